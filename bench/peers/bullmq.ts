/** BullMQ on a Redis that syncs every write to disk before it replies. */
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import type { Contender, Job, Peer, Recovery, RoundSetup } from "./peer.ts";

const fillBatch = 5_000;

const recoveryOptions: Readonly<Record<Recovery, object>> = {
  default: {},
  short: { lockDuration: 5_000, stalledInterval: 5_000 },
};

async function open({ redisUrl, postgresUrl, recovery = "default" }: RoundSetup): Promise<Peer> {
  // Named after the database of the round, so that rounds do not share jobs.
  const name = new URL(postgresUrl).pathname.slice(1);
  const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
  const queue = new Queue<Job>(name, { connection });
  await queue.waitUntilReady();
  return {
    send: (job) => queue.add("bench", job),
    async fill(count) {
      for (let from = 0; from < count; from += fillBatch) {
        const length = Math.min(fillBatch, count - from);
        await queue.addBulk(Array.from({ length }, (_, i) => ({ name: "bench", data: { n: from + i, sentAt: 0 } })));
      }
    },
    async work(handle) {
      const worker = new Worker<Job>(name, async ({ data }) => void (await handle(data)), {
        connection,
        concurrency: 100,
        ...recoveryOptions[recovery],
      });
      worker.on("error", (error) => console.error("bullmq:", error));
      await worker.waitUntilReady();
      return { [Symbol.asyncDispose]: () => worker.close(true) };
    },
    countUnfinished: () => queue.getJobCountByTypes("waiting", "active", "delayed", "prioritized"),
    async bytes() {
      return Number(/used_memory:(\d+)/.exec(await connection.info("memory"))?.[1]);
    },
    async [Symbol.asyncDispose]() {
      await queue.close();
      connection.disconnect();
    },
  };
}

/** Every round starts with an empty Redis. */
export async function emptyRedis(url: string): Promise<void> {
  const redis = new Redis(url);
  await redis.flushall();
  redis.disconnect();
}

export const bullmq: Contender = {
  package: "bullmq",
  settings: "concurrency 100; Redis with appendonly yes and appendfsync always",
  notGuaranteed:
    "no enqueue in a PostgreSQL transaction, so a job can be lost although its change committed, or the reverse; a lock token fences late completions; no inbox; no order with concurrency above 1",
  recovery: {
    default: "lockDuration and stalledInterval 30 s (the defaults, which it recommends)",
    short: "lockDuration and stalledInterval 5 s",
  },
  outsidePostgres: true,
  open,
};
