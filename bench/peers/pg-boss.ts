/** pg-boss, with batches, bursts and NOTIFY, and a table for the queue alone. */
import { PgBoss } from "pg-boss";
import { bytesOf, countOf, plainPool } from "./database.ts";
import type { Contender, Job, Peer, Recovery, Site } from "./peer.ts";

const queue = "bench";
const fillAtOnce = 10_000;

const recoveryOptions: Readonly<Record<Recovery, object>> = {
  default: {},
  short: { superviseIntervalSeconds: 1, monitorIntervalSeconds: 1 },
};

async function open(site: Site, { notify }: { notify: boolean }): Promise<Peer> {
  const { postgresUrl, recovery = "default" } = site;
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
  const db = plainPool(postgresUrl, 2);
  return {
    enqueue: (tx, job) =>
      boss.send(queue, job, { db: { executeSql: (text, values) => tx.query(text, values as unknown[]) } }),
    send: (job) => boss.send(queue, job),
    async fill(count) {
      for (let from = 0; from < count; from += fillAtOnce) {
        const n = Math.min(fillAtOnce, count - from);
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
        // A job that a dead worker held comes back without a NOTIFY.
        ...(recovery === "short" && { notifyPollingIntervalSeconds: 0.5 }),
      };
      await boss.work<Job>(queue, options, async (jobs) => {
        await Promise.all(jobs.map(({ data }) => handle(data)));
      });
      return { [Symbol.asyncDispose]: () => boss.offWork(queue) };
    },
    left: () => countOf(db, `pgboss.job where name = '${queue}' and state < 'completed'`),
    bytes: () => bytesOf(db, "pgboss"),
    async [Symbol.asyncDispose]() {
      await db.end();
      await boss.stop({ graceful: false });
    },
  };
}

const settings = "batchSize 500, localConcurrency 2, burstWhenBatchFull, partition";

const common = {
  package: "pg-boss",
  lacks:
    "settlements are fenced by the retry count, which a job that was given back keeps; no inbox; order only in queues of one kind (key_strict_fifo), which is not used here",
  recovery: {
    short:
      "heartbeatSeconds 10 (its minimum), superviseIntervalSeconds and monitorIntervalSeconds 1, notifyPollingIntervalSeconds 0.5; as it comes, 15 minutes (expireInSeconds)",
  },
};

export const pgBoss: Contender = {
  ...common,
  settings: `${settings}, useListenNotify and notify`,
  open: (site) => open(site, { notify: true }),
};

export const pgBossPolling: Contender = {
  ...common,
  settings: `${settings}, notify off, pollingIntervalSeconds 0.5 (its minimum)`,
  open: (site) => open(site, { notify: false }),
};
