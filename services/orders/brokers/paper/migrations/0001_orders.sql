-- A broker on paper: what it was sent and has taken. No table of the service refers to it, and it refers to none.
create table orders (
  position        bigint generated always as identity primary key,
  client_order_id text not null unique,                    -- it takes an order once, however often it is sent
  instrument      text not null,
  side            text not null,
  qty             numeric not null,
  filled_qty      numeric not null,
  price           numeric,
  status          text not null,
  why             text,
  taken_at        timestamptz not null default clock_timestamp(),
  constraint paper_status_is_known check (status in ('filled', 'open', 'expired', 'cancelled', 'rejected'))
);

create index orders_taken on orders (taken_at, position);
