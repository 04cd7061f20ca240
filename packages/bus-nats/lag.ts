/** Counts the messages that wait for a consumer, over its streams. */
import { JetStreamApiCodes, JetStreamApiError, type JetStreamManager, type NextMsgRequest } from "@nats-io/jetstream";
import type { ConsumerLag } from "@todoke/kernel/bus";
import type { Connection } from "./connection.ts";
import type { DurableName } from "./names.ts";

export async function readLag(connection: Connection, durables: readonly DurableName[]): Promise<ConsumerLag> {
  const lags = await Promise.all(durables.map((name) => connection.request((manager) => readOne(manager, name))));
  return {
    waiting: lags.reduce((sum, { waiting }) => sum + waiting, 0),
    oldestMs: Math.max(0, ...lags.map(({ oldestMs = 0 }) => oldestMs)),
  };
}

async function readOne(manager: JetStreamManager, { stream, durable, filter }: DurableName): Promise<ConsumerLag> {
  const info = await ifFound(manager.consumers.info(stream, durable));
  // A consumer that has never subscribed has read nothing; without a stream, nothing was published.
  const waiting = info ? info.num_pending + info.num_ack_pending : undefined;
  if (waiting === 0) return { waiting };
  // The client's type lacks this request of the server: the first message of the subject from a position on.
  const next = { seq: (info?.ack_floor.stream_seq ?? 0) + 1, next_by_subj: filter } satisfies NextMsgRequest;
  const oldest = await ifFound(manager.streams.getMessage(stream, next));
  if (!oldest) return { waiting: 0 };
  return { waiting: waiting ?? 1, oldestMs: Date.now() - oldest.time.getTime() };
}

async function ifFound<T>(request: Promise<T | null>): Promise<T | undefined> {
  try {
    return (await request) ?? undefined;
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || !missing.includes(error.code)) throw error;
    return undefined;
  }
}

const noMessageFound = 10037;
const missing: readonly number[] = [
  JetStreamApiCodes.ConsumerNotFound,
  JetStreamApiCodes.StreamNotFound,
  noMessageFound,
];
