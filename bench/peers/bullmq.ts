/** BullMQ on a Redis that syncs every write to disk before it answers. */
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import type { Contender, Job, Peer, Recovery, Site } from "./peer.ts";

const fillAtOnce = 5_000;

const recoveryOptions: Readonly<Record<Recovery, object>> = {
  default: {},
  short: { lockDuration: 5_000, stalledInterval: 5_000 },
};

async function open({ redisUrl, postgresUrl, recovery = "default" }: Site): Promise<Peer> {
  // Named after the round's database, so that a round never meets the jobs of another.
  const name = new URL(postgresUrl).pathname.slice(1);
  const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
  const queue = new Queue<Job>(name, { connection });
  await queue.waitUntilReady();
  return {
    send: (job) => queue.add("bench", job),
    async fill(count) {
      for (let from = 0; from < count; from += fillAtOnce) {
        const length = Math.min(fillAtOnce, count - from);
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
    left: () => queue.getJobCountByTypes("waiting", "active", "delayed", "prioritized"),
    async bytes() {
      return Number(/used_memory:(\d+)/.exec(await connection.info("memory"))?.[1]);
    },
    async [Symbol.asyncDispose]() {
      await queue.close();
      connection.disconnect();
    },
  };
}

/** Rounds are to begin with an empty Redis, as they do with an empty database. */
export async function emptyRedis(url: string): Promise<void> {
  const redis = new Redis(url);
  await redis.flushall();
  redis.disconnect();
}

export const bullmq: Contender = {
  package: "bullmq",
  settings: "concurrency 100; Redis with appendonly yes and appendfsync always",
  lacks:
    "it cannot enqueue in a transaction of PostgreSQL, so a job and the change that it follows can come apart; a lock token fences what is ended late; no inbox; no order once more than one job runs",
  recovery: {
    default: "lockDuration and stalledInterval 30 s (its advice is to leave them)",
    short: "lockDuration and stalledInterval 5 s",
  },
  elsewhere: true,
  open,
};
