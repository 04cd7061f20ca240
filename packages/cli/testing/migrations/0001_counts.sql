create table counts (id bigint generated always as identity primary key);
