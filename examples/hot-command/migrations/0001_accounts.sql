create table accounts (
  account text primary key,
  balance bigint not null,
  version bigint not null default 1
);
