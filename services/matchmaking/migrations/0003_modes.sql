-- Modes that the rules have, or had until lately: who waits in a mode that has left them still has to be looked after.
create table modes (
  mode          text primary key,
  last_in_rules timestamptz not null
);
