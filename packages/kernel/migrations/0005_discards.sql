-- An operator may also decide that a dead row is never tried again. The row is deleted, and kept here whole.
alter table redrives
  add column action    text not null default 'redrive',
  add column discarded jsonb,                              -- the row as it was
  add constraint redrive_action_is_known check (action in ('redrive', 'discard')),
  add constraint redrive_discard_keeps_the_row check ((action = 'discard') = (discarded is not null));
