/**
 * Ours, twice: a jobs table as a user of the library would describe one to `claims`, and the outbox, whose events keep
 * the order of their aggregates and go to a bus (here one that takes everything at once).
 */
import { createClaims } from "@todoke/kernel/claims";
import { afterCommit, type Db, migrate, openDb, type Tx, transaction } from "@todoke/kernel/db";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { createRelay, openOutbox } from "@todoke/kernel/outbox";
import { createWorker, done, type Outcome, openWakeups, type Wakeups, type Worker } from "@todoke/kernel/worker";
import { bytesOf, countOf } from "./database.ts";
import type { Contender, Handle, Job, Peer, Recovery, Site } from "./peer.ts";

/** The usual one, so that a transaction of any caller finds the tables. */
const schema = "public";
const topic = "jobs";
const leaseMs: Readonly<Record<Recovery, number>> = { default: 30_000, short: 5_000 };
const recovery = { default: "leaseMs 30 s", short: "leaseMs 5 s" };

interface Opened {
  readonly db: Db;
  readonly wakeups: Wakeups;
  readonly settings: { batchMax: number; concurrency: number; leaseMs: number };
}

async function opened(site: Site): Promise<Opened & AsyncDisposable> {
  const db = openDb({ url: site.postgresUrl, schema, statementTimeoutMs: 120_000 });
  await migrate(db, { schema, sets: [kernelMigrations] });
  const wakeups = openWakeups({ url: site.postgresUrl });
  await wakeups.listening;
  return {
    db,
    wakeups,
    settings: { batchMax: 500, concurrency: 1_000, leaseMs: leaseMs[site.recovery ?? "default"] },
    async [Symbol.asyncDispose]() {
      await wakeups[Symbol.asyncDispose]();
      await db.end();
    },
  };
}

const started = (w: Worker): AsyncDisposable => {
  w.start();
  return w;
};

async function ended(handle: Handle, job: Job): Promise<Outcome> {
  await handle(job);
  return done;
}

const jobs = createClaims<{ payload: Job }>({
  table: "jobs",
  key: "job_id",
  keyType: "bigint",
  states: { ready: "READY", claimed: "RUNNING", dead: "DEAD" }, // Done is deleted.
  select: "c.payload",
});

/** As docs and migrations of the kernel have it: checks, room on the page, and an index for each question. */
const jobsTable = `
  create table if not exists jobs (
    job_id        bigint generated always as identity primary key,
    payload       jsonb not null,
    status        text not null default 'READY',
    attempt_count int not null default 0,
    next_retry_at timestamptz not null default now(),
    lease_epoch   bigint not null default 0,
    locked_by     text,
    locked_at     timestamptz,
    lease_until   timestamptz,
    last_error    text,
    constraint jobs_status_is_known check (status in ('READY', 'RUNNING', 'DEAD')),
    constraint jobs_leased_iff_running check ((status = 'RUNNING') = (lease_until is not null))
  ) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
          autovacuum_vacuum_cost_delay = 0);
  create index if not exists jobs_ready on jobs (next_retry_at) where status = 'READY';
  create index if not exists jobs_leased on jobs (lease_until) where status = 'RUNNING';`;

const insertJob = (job: Job) => ({
  name: "insert job",
  text: "insert into jobs (payload) values ($1)",
  values: [JSON.stringify(job)],
});

async function openJobs(site: Site): Promise<Peer> {
  const ours = await opened(site);
  const { db, wakeups, settings } = ours;
  await db.query(jobsTable);
  return {
    async enqueue(tx, job) {
      await tx.query(insertJob(job));
      afterCommit(tx as Tx, () => wakeups.signal(topic));
    },
    async send(job) {
      await db.query(insertJob(job));
      wakeups.signal(topic);
    },
    fill: async (count) => {
      await db.query(
        `insert into jobs (payload) select jsonb_build_object('n', i, 'sentAt', 0) from generate_series(1, $1::int) i`,
        [count],
      );
      wakeups.signal(topic);
    },
    work: async (handle) =>
      started(
        createWorker({
          name: "bench",
          db,
          claims: jobs,
          settings,
          wakeups,
          topic,
          run: (claimed) => claimed.map(({ payload }) => ended(handle, payload)),
        }),
      ),
    left: () => countOf(db, "jobs where status in ('READY', 'RUNNING')"),
    bytes: () => bytesOf(db, schema),
    [Symbol.asyncDispose]: () => ours[Symbol.asyncDispose](),
  };
}

const insertEvents = `
  insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload)
  select uuidv7(), 'Made', 'bench.events', 'k' || i, 1, jsonb_build_object('n', i, 'sentAt', 0)
    from generate_series(1, $1::int) i`;

async function openEvents(site: Site): Promise<Peer> {
  const ours = await opened(site);
  const { db, wakeups, settings } = ours;
  const outbox = openOutbox({ wakeups, topic });
  const append = (tx: Tx, job: Job) =>
    outbox.append(tx, {
      eventType: "Made",
      subject: "bench.events",
      aggregateKey: `k${job.n}`,
      version: 1,
      payload: job,
    });
  const busOf = (handle: Handle) => ({
    publish: (events: readonly { payload: Uint8Array }[]) =>
      Promise.all(events.map(({ payload }) => ended(handle, JSON.parse(Buffer.from(payload).toString())))),
  });
  return {
    enqueue: (tx, job) => append(tx as Tx, job),
    send: (job) => transaction(db, (tx) => append(tx, job)),
    fill: async (count) => {
      await db.query(insertEvents, [count]);
      wakeups.signal(topic);
    },
    work: async (handle) => started(createRelay({ db, bus: busOf(handle), settings, wakeups, topic })),
    left: () => countOf(db, "outbox_events where published_at is null"),
    bytes: () => bytesOf(db, schema),
    [Symbol.asyncDispose]: () => ours[Symbol.asyncDispose](),
  };
}

const settings = "batchMax 500, concurrency 1000 (two batches in flight), wake-ups by NOTIFY after the commit";
const lacks =
  "effects outside PostgreSQL can happen twice after a crash; no priorities, and no time at which a job is to run but its next try";

export const todokeJobs: Contender = {
  settings: `${settings}; a job that is done is deleted`,
  lacks: `${lacks}; no order between jobs; a finished job leaves no trace`,
  recovery,
  open: openJobs,
};

export const todokeOutbox: Contender = {
  settings: `${settings}; ordered by aggregate, one event per aggregate, to a bus that takes everything`,
  lacks,
  recovery,
  open: openEvents,
};
