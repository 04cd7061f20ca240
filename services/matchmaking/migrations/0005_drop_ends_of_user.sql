-- migrate: no transaction
-- ticket_ends_met replaces it, also for processes of the build before, whose statement finds the user's tickets there.
drop index concurrently if exists ticket_ends_of_user;
