-- The trades of every order.
create table fills (
  order_position bigint not null references orders on delete cascade,
  n              int not null,                             -- 1 for the first trade of the order
  qty            numeric not null,
  price          numeric not null,
  filled_at      timestamptz not null default clock_timestamp(),
  primary key (order_position, n)
);

-- Until now an order was filled at once, in one trade.
insert into fills (order_position, n, qty, price, filled_at)
select position, 1, filled_qty, price, taken_at from orders where filled_qty > 0;

-- How often the market was compared with a resting order: the price at each time depends on it and on the seed.
alter table orders
  add column if not exists matches int not null default 0,
  add column if not exists limit_price numeric;            -- null: a market order, or one from before this column
