create table purchases (
  user_id text not null,
  purchase_id text not null,
  item text not null,
  price bigint not null check (price > 0),
  state text not null default 'NEW' check (state in ('NEW', 'HELD', 'PAID', 'GRANTED', 'REFUSED')),
  hold_id text,
  updated_at timestamptz not null default now(),
  primary key (user_id, purchase_id),
  check (hold_id is not null or state in ('NEW', 'REFUSED'))
);

-- An item is bought once, also by two purchases at the same time.
create unique index purchases_by_item on purchases (user_id, item) where state <> 'REFUSED';

-- For the search for purchases to continue.
create index purchases_unfinished on purchases (updated_at) where state in ('NEW', 'HELD', 'PAID');
