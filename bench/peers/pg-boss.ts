/** pg-boss with batches, bursts, NOTIFY and a partition for the queue. */
import { PgBoss } from "pg-boss";
import { countRows, defaultPool, schemaBytes } from "./database.ts";
import type { Contender, Job, Peer, Recovery, RoundSetup } from "./peer.ts";

const queue = "bench";
const fillBatch = 10_000;

const recoveryOptions: Readonly<Record<Recovery, object>> = {
  default: {},
  short: { superviseIntervalSeconds: 1, monitorIntervalSeconds: 1 },
};

async function open(setup: RoundSetup, { notify }: { notify: boolean }): Promise<Peer> {
  const { postgresUrl, recovery = "default" } = setup;
  const boss = new PgBoss({
    connectionString: postgresUrl,
    max: 8,
    useListenNotify: notify,
    schedule: false,
    ...recoveryOptions[recovery],
  });
  boss.on("error", (error) => console.error("pg-boss:", error));
  await boss.start();
  const heartbeat = recovery === "short" ? { heartbeatSeconds: 10 } : {};
  if (!(await boss.getQueue(queue))) await boss.createQueue(queue, { partition: true, notify, ...heartbeat });
  const db = defaultPool(postgresUrl, 2);
  return {
    enqueue: (tx, job) =>
      boss.send(queue, job, { db: { executeSql: (text, values) => tx.query(text, values as unknown[]) } }),
    send: (job) => boss.send(queue, job),
    async fill(count) {
      for (let from = 0; from < count; from += fillBatch) {
        const n = Math.min(fillBatch, count - from);
        await boss.insert(
          queue,
          Array.from({ length: n }, (_, i) => ({ data: { n: from + i, sentAt: 0 } satisfies Job })),
        );
      }
    },
    async work(handle) {
      const options = {
        batchSize: 500,
        localConcurrency: 2,
        burstWhenBatchFull: true,
        pollingIntervalSeconds: 0.5,
        // A dead worker's job becomes available without a NOTIFY.
        ...(recovery === "short" && { notifyPollingIntervalSeconds: 0.5 }),
      };
      await boss.work<Job>(queue, options, async (jobs) => {
        await Promise.all(jobs.map(({ data }) => handle(data)));
      });
      return { [Symbol.asyncDispose]: () => boss.offWork(queue) };
    },
    countUnfinished: () => countRows(db, `pgboss.job where name = '${queue}' and state < 'completed'`),
    bytes: () => schemaBytes(db, "pgboss"),
    async [Symbol.asyncDispose]() {
      await db.end();
      await boss.stop({ graceful: false });
    },
  };
}

const settings = "batchSize 500, localConcurrency 2, burstWhenBatchFull, partition";

const common = {
  package: "pg-boss",
  notGuaranteed:
    "completions are fenced by the retry count, which does not change when a job is released; no inbox; order only in key_strict_fifo queues, which are not used here",
  recovery: {
    short:
      "heartbeatSeconds 10 (its minimum), superviseIntervalSeconds and monitorIntervalSeconds 1, notifyPollingIntervalSeconds 0.5; by default 15 minutes (expireInSeconds)",
  },
};

export const pgBoss: Contender = {
  ...common,
  settings: `${settings}, useListenNotify and notify`,
  open: (setup) => open(setup, { notify: true }),
};

export const pgBossPolling: Contender = {
  ...common,
  settings: `${settings}, notify off, pollingIntervalSeconds 0.5 (its minimum)`,
  open: (setup) => open(setup, { notify: false }),
};
