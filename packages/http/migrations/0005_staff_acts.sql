-- Acts of staff: who did what to whom, in which role and why. Written in the transaction of the act; rows never change.
create table staff_acts (
  act_id     bigint generated always as identity primary key,
  actor      text not null,                                -- user:<id>
  role       text not null,                                -- of the actor, at that time
  act        text not null,                                -- the operationId of the route
  target     text not null,                                -- what it was done to: a user, a row, an order, a key
  reason     text not null,
  details    jsonb not null default '{}',
  undoes     bigint references staff_acts,
  created_at timestamptz not null default now(),
  constraint staff_act_role_is_known check (role in ('VIEWER', 'OPERATOR', 'ADMIN')),
  constraint staff_act_says_why check (length(reason) between 1 and 500),
  constraint staff_act_names_are_short check (length(actor) <= 160 and length(act) <= 64 and length(target) <= 400)
);

-- an act is undone once
create unique index staff_acts_undone on staff_acts (undoes) where undoes is not null;
-- the audit log, newest first: all of it, of one actor, of one target
create index staff_acts_time on staff_acts (created_at, act_id);
create index staff_acts_actor on staff_acts (actor, created_at, act_id);
create index staff_acts_target on staff_acts (target, created_at, act_id);
