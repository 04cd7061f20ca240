/**
 * The relay: publishes committed events to the bus. Nothing else publishes.
 *
 * A batch is claimed, published and settled in one statement or call each. The next event of an aggregate is published only
 * when the one before it is stored. While the bus is unavailable, events are released, which does not count as an attempt,
 * and the relay pauses.
 *
 * If the bus is in the database of the outbox, one transaction stores the messages and makes the events PUBLISHED. If their
 * consumer is in this process, it handles them in the same transaction (docs/adr/0153).
 */
import { BusUnavailable, type Envelope, type EventBus, type TransactionalPublisher } from "../bus/index.ts";
import type { Claimed } from "../claims/index.ts";
import type { Tx } from "../db/index.ts";
import { count, isSampled, observeValue, spanNames, startSpan } from "../telemetry/index.ts";
import {
  backoffMs,
  createDirectWorker,
  createWorker,
  dead,
  describeError,
  inAggregateOrder,
  type Leases,
  type Outcome,
  release,
  retry,
  type TransactionalPass,
  type Worker,
  type WorkerOptions,
} from "../worker/index.ts";
import {
  completeEvents,
  completeEventsIn,
  type OutboxEvent,
  outboxClaims,
  outboxClaimsOf,
  type SubjectFilter,
} from "./store.ts";

export interface RelayOptions
  extends Pick<WorkerOptions<OutboxEvent>, "db" | "settings" | "wakeups" | "topic" | "onError"> {
  readonly bus: Pick<EventBus, "publish">;
  /** Set if the bus is in the database of the outbox. A relay of some subjects does not use it. */
  readonly publisher?: TransactionalPublisher;
  /**
   * The subjects that this relay publishes; all by default. A service with several buses has a relay for each, so that an
   * unavailable bus delays no event of another.
   */
  readonly subjects?: SubjectFilter;
  /**
   * Encodes the payload of an event; JSON by default. If it throws, the event is FAILED at once. If the error has
   * `maybeNewerSchema: true`, a newer build may be able to encode it (a rolling deploy), and the event is retried.
   */
  readonly encode?: (event: { eventType: string; payload: string }) => Uint8Array;
  readonly name?: string;
  /**
   * Called with the time from the insert of an event to its storage by the bus. The default records it as
   * todoke.outbox.publish.delay.
   */
  readonly onPublished?: (event: OutboxEvent, delaySeconds: number) => void;
}

type Job = Claimed<OutboxEvent>;
type Encoded = { readonly job: Job; readonly payload: Uint8Array };

const encodeJson = ({ payload }: { payload: string }) => new TextEncoder().encode(payload);

// While the bus is unavailable: from 0.1 s up to about 5 s.
const pauseBackoff = { baseMs: 50, capMs: 5_000 };

/** Creates the worker that publishes the outbox. Call `start()` to run it in the background. */
export function createRelay({
  bus,
  subjects,
  publisher,
  encode = encodeJson,
  name = "relay",
  onPublished = observeDelay,
  ...options
}: RelayOptions): Worker {
  let unavailable = 0;

  /** Publishes events of different aggregates together. Returns the outcomes in input order. */
  async function publishEvents(jobs: readonly Job[], leases: Leases): Promise<readonly Outcome[]> {
    const encoded = jobs.map(encodeSafely);
    const publishable = jobs.flatMap((job, index) => {
      const payload = encoded[index];
      return payload instanceof Uint8Array ? [{ job, payload }] : [];
    });
    const outcomes = publishable.length > 0 ? await publish(publishable, leases) : [];
    // Released events (the stream is full, no queue exists) must not be claimed again at once.
    leases.pause(Math.max(0, ...outcomes.map((outcome) => (outcome.kind === "release" ? outcome.delayMs : 0))));
    const results = outcomes.values();
    return jobs.map((job, index) => {
      const payload = encoded[index];
      return withBackoff(job, (payload instanceof Uint8Array ? results.next().value : payload) as Outcome);
    });
  }

  /** The bus decides whether to retry. The relay sets the delay, because it knows the attempt count. */
  function withBackoff(job: Job, outcome: Outcome): Outcome {
    return outcome.kind === "retry"
      ? retry(backoffMs(job.claim.attempt, options.settings?.backoff), outcome.reason)
      : outcome;
  }

  function encodeSafely(job: Job): Uint8Array | Outcome {
    try {
      return encode(job);
    } catch (error) {
      if (isMaybeNewerSchema(error)) return retry(0, error.message);
      return dead(`cannot be encoded: ${describeError(error)}`);
    }
  }

  async function publish(events: readonly Encoded[], leases: Leases): Promise<readonly Outcome[]> {
    const startedAt = performance.now();
    const spans = events.map(({ job }) => startPublishSpan(job));
    const outcomes = await callBus(
      events.map(({ job, payload }, index) => toEnvelope(job, payload, spans[index]?.headers)),
      leases,
    );
    const tookMs = performance.now() - startedAt;
    events.forEach(({ job }, index) => {
      const outcome = outcomes[index];
      spans[index]?.end(outcome && "reason" in outcome ? outcome.reason : undefined);
      if (outcome?.kind !== "done") return;
      onPublished(job, (job.ageMs + tookMs) / 1_000);
    });
    return outcomes;
  }

  async function callBus(envelopes: readonly Envelope[], leases: Leases): Promise<readonly Outcome[]> {
    try {
      const outcomes = await bus.publish(envelopes);
      unavailable = 0;
      return outcomes;
    } catch (error) {
      if (!(error instanceof BusUnavailable)) return envelopes.map(() => retry(0, describeError(error)));
      count("todoke.outbox.unavailable", { worker: name });
      leases.pause(backoffMs(++unavailable, pauseBackoff));
      return envelopes.map(() => release(describeError(error)));
    }
  }

  const settings = { batchMax: 200, concurrency: 600, ...options.settings };
  const claimed: WorkerOptions<OutboxEvent> = {
    ...options,
    name,
    claims: subjects ? outboxClaimsOf(subjects) : outboxClaims,
    settings,
    run(jobs, leases) {
      const outcomes = inAggregateOrder(jobs, (events) => publishEvents(events, leases));
      return jobs.map((_, index) => outcomes.then((all) => all[index] as Outcome));
    },
  };
  // Rows with a condition of their own cannot be completed without a claim.
  if (!publisher || subjects) return createWorker(claimed);

  /** An event that cannot be encoded fails the pass, and the worker with claims makes it FAILED. */
  const moveEvents = ({ publish }: Pick<TransactionalPublisher, "publish">) =>
    async function move(tx: Tx, events: readonly OutboxEvent[]): Promise<void> {
      const spans = events.map(startPublishSpan);
      const envelopes = events.map((event, index) => toEnvelope(event, encode(event), spans[index]?.headers));
      try {
        await publish(tx, envelopes);
        for (const span of spans) span?.end();
      } catch (error) {
        for (const span of spans) span?.end(describeError(error));
        throw error;
      }
    };

  function findPassWithConsumer(): TransactionalPass<OutboxEvent> | undefined {
    const consumer = publisher?.findConsumer?.();
    if (!consumer) return undefined;
    const { db, schema } = consumer;
    return { db, complete: completeEventsIn(schema), runInTransaction: moveEvents(consumer) };
  }

  return createDirectWorker({
    claimed,
    db: options.db,
    complete: completeEvents,
    batchMax: settings.batchMax,
    runInTransaction: moveEvents(publisher),
    findLongerPass: findPassWithConsumer,
    onDone: (events) => events.forEach((event) => void onPublished(event, event.ageMs / 1_000)),
  });
}

/** Checks a property and not a class, because the kernel does not import the contracts. */
function isMaybeNewerSchema(error: unknown): error is Error {
  return error instanceof Error && "maybeNewerSchema" in error && error.maybeNewerSchema === true;
}

function observeDelay({ subject }: OutboxEvent, delaySeconds: number): void {
  observeValue("todoke.outbox.publish.delay", delaySeconds, { subject });
}

function startPublishSpan(job: OutboxEvent) {
  if (!isSampled(job.headers)) return undefined;
  const attributes = { event_id: job.eventId, event_type: job.eventType, subject: job.subject };
  return startSpan(spanNames.publish, { kind: "producer", attributes, parent: job.headers });
}

function toEnvelope(job: OutboxEvent, payload: Uint8Array, headers = job.headers): Envelope {
  const { eventId, eventType, subject, aggregateKey, occurredAt } = job;
  return { eventId, eventType, subject, aggregateKey, occurredAt, headers, payload };
}
