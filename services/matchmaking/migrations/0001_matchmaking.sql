-- Matches that were made, whichever queue made them. Removed by age, and their tickets' ends with them.
create table matches (
  match_id      uuid primary key,                          -- UUID v7
  mode          text not null,
  region        text,                                      -- where it is played, if the mode's rules choose that
  session       jsonb not null,                            -- what the rules told its players, as it was then
  rules_version text not null,
  matched_at    timestamptz not null,                      -- by the queue's clock
  recorded_at   timestamptz not null default now(),
  constraint match_session_is_an_object check (jsonb_typeof(session) = 'object')
);

-- retention
create index matches_by_age on matches (matched_at);

-- How each ticket ended. The primary key is what makes a ticket end once, whatever a queue believes.
create table ticket_ends (
  ticket_id  text primary key,
  mode       text not null,
  user_id    text not null,
  status     text not null,
  reason     text,                                         -- why it expired
  match_id   uuid references matches on delete cascade,    -- a match and the ends of its tickets go together
  team       int,                                          -- in its match, from 1 on
  party_size int not null,
  attributes jsonb not null,
  joined_at  timestamptz not null,                         -- this and the next two by the queue's clock
  expires_at timestamptz not null,                         -- when its time would have been up
  ended_at   timestamptz not null,
  waited     interval not null generated always as (greatest(ended_at - joined_at, interval '0')) stored,
  constraint ticket_end_of_a_user_once_in_a_match unique (match_id, user_id),
  constraint ticket_end_status_is_known check (status in ('MATCHED', 'CANCELLED', 'EXPIRED')),
  constraint ticket_end_in_a_match_iff_matched check ((status = 'MATCHED') = (match_id is not null)),
  constraint ticket_end_on_a_team_iff_matched check ((status = 'MATCHED') = (team is not null)),
  constraint ticket_end_reason_iff_expired check ((status = 'EXPIRED') = (reason is not null)),
  constraint ticket_end_reason_is_known check (reason in ('timeout', 'heartbeat', 'replaced', 'lost')),
  constraint ticket_end_team_starts_at_1 check (team >= 1),
  constraint ticket_end_party_not_empty check (party_size >= 1),
  constraint ticket_end_matched_in_time check (status <> 'MATCHED' or ended_at <= expires_at)
);

-- stats: how long those waited who were matched last
create index ticket_ends_waits on ticket_ends (mode, ended_at) include (waited) where status = 'MATCHED';
-- join: whom a user met lately
create index ticket_ends_of_user on ticket_ends (user_id, ended_at);
-- retention: ends without a match, which go by their own age
create index ticket_ends_by_age on ticket_ends (ended_at) where match_id is null;

-- What lay in a queue and was no ticket. It blocks nobody here, and is kept for somebody to look at.
create table damaged_tickets (
  ticket_id text not null,                                 -- as the queue had it
  mode      text not null,
  raw       text not null,                                 -- as much of it as can be kept
  why       text not null,
  ended_at  timestamptz not null,
  primary key (ticket_id, mode),
  constraint damaged_ticket_is_bounded check (length(ticket_id) <= 200 and length(mode) <= 200 and length(raw) <= 10000 and length(why) <= 1000)
);

-- retention
create index damaged_tickets_by_age on damaged_tickets (ended_at);

-- Tickets that wait, where the queue is in PostgreSQL. A ticket that ends leaves in the transaction that writes its end down.
create table tickets (
  ticket_id   text primary key,                            -- names its mode, and proves whose it is
  position    bigint generated always as identity,         -- parts those who joined in the same millisecond
  mode        text not null,
  user_id     text not null,
  party_size  int not null,
  attributes  jsonb not null,
  avoid       text[] not null,                             -- users that it is not to meet
  joined_at   timestamptz not null,
  expires_at  timestamptz not null,
  alive_until timestamptz not null,                        -- over from then on: not heard of, or its time is up
  constraint ticket_of_a_user_once_in_a_mode unique (user_id, mode),
  constraint ticket_id_names_its_mode check (starts_with(ticket_id, mode || '.')),
  constraint ticket_attributes_are_an_object check (jsonb_typeof(attributes) = 'object'),
  constraint ticket_party_not_empty check (party_size >= 1),
  constraint ticket_over_when_its_time_is_up check (alive_until <= expires_at)
) with (
  fillfactor = 80,                                         -- rewritten by heartbeats
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);

-- matches and snapshots: in the order of joining
create index tickets_waiting on tickets (mode, joined_at, position);
-- sweep: what is over, how many wait, and when the next one ends
create index tickets_by_end on tickets (mode, alive_until);

-- Which process forms matches in a mode at present. Unlogged: it spares work, and nothing depends on it.
create unlogged table forming_turns (
  mode       text primary key,
  holder     text not null,
  held_until timestamptz not null
) with (fillfactor = 50);
