/** A small claimed table for tests of claims and workers. Done rows are deleted. */
import type { ClaimTableSpec } from "../claims/index.ts";

export const sampleJobs = {
  table: "sample_jobs",
  key: "job_id",
  keyType: "bigint",
  states: { ready: "READY", claimed: "RUNNING", dead: "DEAD" },
  select: "c.owner",
} as const satisfies ClaimTableSpec;

export const createSampleJobs = `
  create table sample_jobs (
    job_id        bigint generated always as identity primary key,
    owner         text not null default 'default',
    status        text not null default 'READY',
    attempt_count int not null default 0,
    next_retry_at timestamptz not null default now(),
    lease_epoch   bigint not null default 0,
    locked_by     text,
    locked_at     timestamptz,
    lease_until   timestamptz,
    last_error    text
  );
  create index sample_jobs_ready on sample_jobs (next_retry_at) where status = 'READY';
  create index sample_jobs_leased on sample_jobs (lease_until) where status = 'RUNNING'`;
