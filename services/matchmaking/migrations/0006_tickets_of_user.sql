-- migrate: no transaction
-- a user's list of tickets, the last joined first
create index concurrently if not exists ticket_ends_joined on ticket_ends (user_id, joined_at, ticket_id collate "C");
