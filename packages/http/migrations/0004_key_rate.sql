-- A key may have a rate of its own: requests per second to one process. Null: the setting <SERVICE>_KEY_PER_SECOND applies.
alter table api_keys
  add column if not exists per_second integer constraint api_key_rate_is_positive check (per_second between 1 and 1000000);
