-- The copy of a discarded row is removed by age, because it has the row's payload. Who discarded it and why stays, and so does the id
-- of its event, which audits compare.
alter table redrives add column copy_removed_at timestamptz;

-- retention: the copies that are still there
create index redrives_copies on redrives (redriven_at) where discarded is not null and copy_removed_at is null;
