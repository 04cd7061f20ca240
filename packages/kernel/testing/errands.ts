/** A small table that is worked by claims, for tests of the engine that need no outbox: what is done is deleted. */
import type { ClaimTable } from "../claims/index.ts";

export const errands = {
  table: "errands",
  key: "errand_id",
  keyType: "bigint",
  states: { ready: "READY", claimed: "RUNNING", dead: "DEAD" },
  read: "c.owner",
} as const satisfies ClaimTable;

export const createErrands = `
  create table errands (
    errand_id     bigint generated always as identity primary key,
    owner         text not null default 'somebody',
    status        text not null default 'READY',
    attempt_count int not null default 0,
    next_retry_at timestamptz not null default now(),
    lease_epoch   bigint not null default 0,
    locked_by     text,
    locked_at     timestamptz,
    lease_until   timestamptz,
    last_error    text
  );
  create index errands_ready on errands (next_retry_at) where status = 'READY';
  create index errands_leased on errands (lease_until) where status = 'RUNNING'`;
