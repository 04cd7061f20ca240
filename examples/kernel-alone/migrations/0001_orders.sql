-- The state; each order emits one event.
create table orders (
  order_id  uuid primary key,
  item      text not null,
  version   bigint not null default 1,
  placed_at timestamptz not null default now()
);

-- The effect of the event. No unique constraint on order_id: a doubled shipment must be visible, not prevented.
create table shipments (
  shipment_id bigint generated always as identity primary key,
  order_id    uuid not null,
  item        text not null,
  made_at     timestamptz not null default now()
);
