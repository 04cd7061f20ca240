-- migrate: no transaction
-- join: whom a user met lately, however many other tickets the user had since. Not a partial index: on stale statistics the
-- planner would also read the peers of a match from it, all of it.
create index concurrently if not exists ticket_ends_met on ticket_ends (user_id, (match_id is not null), ended_at);
