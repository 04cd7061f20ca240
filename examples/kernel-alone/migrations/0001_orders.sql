-- What was ordered: the state that an event tells of.
create table orders (
  order_id  uuid primary key,
  item      text not null,
  version   bigint not null default 1,
  placed_at timestamptz not null default now()
);

-- What follows from an order. No unique constraint on order_id: an order shipped twice must be seen, not prevented.
create table shipments (
  shipment_id bigint generated always as identity primary key,
  order_id    uuid not null,
  item        text not null,
  made_at     timestamptz not null default now()
);
