-- staff search users by the beginning of their name
create index users_name on users ((lower(display_name) collate "C"), user_id) where display_name is not null;
