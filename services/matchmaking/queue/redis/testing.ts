/** Test harness of the queue in Redis. */
import { randomBytes } from "node:crypto";
import { openOutbox } from "@todoke/kernel/outbox";
import { until } from "@todoke/kernel/testing";
import { connectRedis } from "@todoke/redis";
import { operatorClient } from "@todoke/redis/testing";
import { openTestDatabase } from "../../store/testing.ts";
import { type Recorder, type RecorderOptions, startRecorder } from "../../workers/recorder.ts";
import type { TicketQueue } from "../index.ts";
import type { RecordedEnd } from "../record-ends.ts";
import { mode, ticketIds } from "../testing.ts";
import { parseMode } from "../ticket-id.ts";
import { keysFor } from "./prelude.ts";
import { openRedisQueue } from "./redis-queue.ts";

export interface RedisHarnessOptions {
  /** With 0, ends stay in the stream until a test records them. */
  readonly recorders?: number;
  readonly backlogMax?: number;
  readonly idempotencyMs?: number;
}

/** Each test has a key prefix and a database of its own. */
export async function createRedisHarness({ url }: { readonly url: string }, options: RedisHarnessOptions = {}) {
  const keyPrefix = `t${randomBytes(6).toString("hex")}`;
  const t = await openTestDatabase();
  const client = await operatorClient(url);
  const errors: unknown[] = [];
  const recorded: RecordedEnd[] = [];
  const opened: AsyncDisposable[] = [];
  const recorders: Recorder[] = [];
  const onError = (error: unknown) => void errors.push(error);
  const onRecorded = (ends: readonly RecordedEnd[]) => void recorded.push(...ends);

  function process(at = url) {
    // A slow server must not count as unavailable in these tests.
    const link = connectRedis({ url: at, onError, requestTimeoutMs: 60_000 });
    opened.push(link);
    return { link, db: t.open({ poolMax: 4 }), outbox: openOutbox(), ids: ticketIds, keyPrefix, onError, onRecorded };
  }

  function record(at = url, more: Partial<RecorderOptions> = {}): Recorder {
    const recorder = startRecorder({ ...process(at), modes: () => [mode, "ranked"], pollMs: 50, ...more });
    recorders.push(recorder);
    return recorder;
  }

  const keysOfMode = (of = mode) => keysFor(keyPrefix, of);
  const key = (name: string, of = mode) => keysOfMode(of).find((each) => each.endsWith(`:${name}`)) ?? "";
  const harness = {
    db: t.db,
    keyPrefix,
    client,
    key,
    keysOfMode,
    /** All reported errors and ends. */
    errors,
    recorded,
    process,
    record,
    open(at = url): TicketQueue {
      const onEnded = (of: string) => void recorders.forEach((recorder) => void recorder.wake(of));
      return openRedisQueue({ ...process(at), onEnded, ...options });
    },
    async allRecorded(): Promise<void> {
      const lengths = () => Promise.all([mode, "ranked"].map((of) => client.xLen(key("ends", of))));
      await until("every end is recorded", async () => (await lengths()).every((length) => length === 0));
    },
    async damage(ticketId: string): Promise<void> {
      await client.hSet(key("tickets", parseMode(ticketId)), ticketId, '{"user": "half a rec');
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(recorders.map((recorder) => recorder[Symbol.asyncDispose]()));
      await Promise.all(opened.map((each) => each[Symbol.asyncDispose]()));
      if (client.isReady) for (const of of [mode, "ranked"]) await client.del(keysOfMode(of));
      client.destroy();
      await t[Symbol.asyncDispose]();
    },
  };
  for (let n = 0; n < (options.recorders ?? 1); n++) record();
  return harness;
}
