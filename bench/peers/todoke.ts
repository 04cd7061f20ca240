/**
 * Todoke as two contenders: a jobs table on `createClaims`, and the outbox, which keeps the order per aggregate and publishes
 * to a bus (here one that runs the handler).
 */
import { createClaims } from "@todoke/kernel/claims";
import { afterCommit, type Db, migrate, openDb, type Tx, transaction } from "@todoke/kernel/db";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { createRelay, openOutbox } from "@todoke/kernel/outbox";
import { createWorker, done, type Outcome, openWakeups, type Wakeups, type Worker } from "@todoke/kernel/worker";
import { countRows, schemaBytes } from "./database.ts";
import type { Contender, Handle, Job, Peer, Recovery, RoundSetup } from "./peer.ts";

/** The default schema, so that a caller's transaction finds the tables. */
const schema = "public";
const topic = "jobs";
const leaseMs: Readonly<Record<Recovery, number>> = { default: 30_000, short: 5_000 };
const recovery = { default: "leaseMs 30 s", short: "leaseMs 5 s" };

interface TodokeSetup {
  readonly db: Db;
  readonly wakeups: Wakeups;
  readonly settings: { batchMax: number; concurrency: number; leaseMs: number };
}

async function openKernel(setup: RoundSetup): Promise<TodokeSetup & AsyncDisposable> {
  const db = openDb({ url: setup.postgresUrl, schema, statementTimeoutMs: 120_000 });
  await migrate(db, { schema, sets: [kernelMigrations] });
  const wakeups = openWakeups({ url: setup.postgresUrl });
  await wakeups.listening;
  return {
    db,
    wakeups,
    settings: { batchMax: 500, concurrency: 1_000, leaseMs: leaseMs[setup.recovery ?? "default"] },
    async [Symbol.asyncDispose]() {
      await wakeups[Symbol.asyncDispose]();
      await db.end();
    },
  };
}

const startWorker = (worker: Worker): AsyncDisposable => {
  worker.start();
  return worker;
};

async function runJob(handle: Handle, job: Job): Promise<Outcome> {
  await handle(job);
  return done;
}

const jobs = createClaims<{ payload: Job }>({
  table: "jobs",
  key: "job_id",
  keyType: "bigint",
  states: { ready: "READY", claimed: "RUNNING", dead: "DEAD" }, // Done jobs are deleted.
  select: "c.payload",
});

/** Like the kernel's own tables: checks, a low fillfactor, and an index per query. */
const createJobsTableSql = `
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

async function openJobs(setup: RoundSetup): Promise<Peer> {
  const ours = await openKernel(setup);
  const { db, wakeups, settings } = ours;
  await db.query(createJobsTableSql);
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
      startWorker(
        createWorker({
          name: "bench",
          db,
          claims: jobs,
          settings,
          wakeups,
          topic,
          run: (claimed) => claimed.map(({ payload }) => runJob(handle, payload)),
        }),
      ),
    countUnfinished: () => countRows(db, "jobs where status in ('READY', 'RUNNING')"),
    bytes: () => schemaBytes(db, schema),
    [Symbol.asyncDispose]: () => ours[Symbol.asyncDispose](),
  };
}

const insertEventsSql = `
  insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload)
  select uuidv7(), 'Made', 'bench.events', 'k' || i, 1, jsonb_build_object('n', i, 'sentAt', 0)
    from generate_series(1, $1::int) i`;

async function openEvents(setup: RoundSetup): Promise<Peer> {
  const ours = await openKernel(setup);
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
  const handlerBus = (handle: Handle) => ({
    publish: (events: readonly { payload: Uint8Array }[]) =>
      Promise.all(events.map(({ payload }) => runJob(handle, JSON.parse(Buffer.from(payload).toString())))),
  });
  return {
    enqueue: (tx, job) => append(tx as Tx, job),
    send: (job) => transaction(db, (tx) => append(tx, job)),
    fill: async (count) => {
      await db.query(insertEventsSql, [count]);
      wakeups.signal(topic);
    },
    work: async (handle) => startWorker(createRelay({ db, bus: handlerBus(handle), settings, wakeups, topic })),
    countUnfinished: () => countRows(db, "outbox_events where published_at is null"),
    bytes: () => schemaBytes(db, schema),
    [Symbol.asyncDispose]: () => ours[Symbol.asyncDispose](),
  };
}

const settings = "batchMax 500, concurrency 1000 (two batches in flight), wake-ups by NOTIFY after the commit";
const notGuaranteed =
  "effects outside PostgreSQL can happen twice after a crash; no priorities; no scheduled start other than the next retry";

export const todokeJobs: Contender = {
  settings: `${settings}; done jobs are deleted`,
  notGuaranteed: `${notGuaranteed}; no order between jobs; finished jobs are deleted`,
  recovery,
  open: openJobs,
};

export const todokeOutbox: Contender = {
  settings: `${settings}; ordered by aggregate, one event per aggregate, to a bus that stores nothing`,
  notGuaranteed,
  recovery,
  open: openEvents,
};
