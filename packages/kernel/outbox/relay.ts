/**
 * Carries committed events to the bus. Nothing else in Todoke publishes.
 *
 * A batch is claimed, published and settled in one statement or call each. Events of one aggregate go one after the
 * other, the next only when the one before is stored. When the bus cannot be reached nothing is held against the events:
 * they go back with their attempts, and the relay rests.
 */
import { BusUnavailable, type Envelope, type EventBus } from "../bus/index.ts";
import type { Claimed } from "../claims/index.ts";
import { count, isRecorded, observeValue, spanNames, startSpan } from "../telemetry/index.ts";
import {
  backoffMs,
  dead,
  describeError,
  inWaves,
  type Leases,
  type Outcome,
  release,
  retry,
  type Worker,
  type WorkerOptions,
  worker,
} from "../worker/index.ts";
import { type OutboxEvent, outboxEvents } from "./store.ts";

export interface RelayOptions
  extends Pick<WorkerOptions<OutboxEvent>, "db" | "settings" | "wakeups" | "topic" | "onError"> {
  readonly bus: Pick<EventBus, "publish">;
  /**
   * Turns the event's JSON into what travels. A throw means that it never can be: the event is FAILED at once. What this
   * build cannot encode but a newer one may (a rolling deploy) is thrown with `perhapsNewer: true`, and is tried again.
   */
  readonly encode?: (event: { eventType: string; payload: string }) => Uint8Array;
  readonly name?: string;
  /**
   * Hears how long each event took from its row being written to the bus having stored it. Usually that is measured as
   * todoke.outbox.publish.delay; whoever listens measures it instead.
   */
  readonly onPublished?: (event: OutboxEvent, delaySeconds: number) => void;
}

type Job = Claimed<OutboxEvent>;
type Encoded = { readonly job: Job; readonly payload: Uint8Array };

const asJson = ({ payload }: { payload: string }) => new TextEncoder().encode(payload);

// While the bus is away, ask again after 0.1 s, then less and less often, at most every 5 s or so.
const restBackoff = { baseMs: 50, capMs: 5_000 };

export function relay({
  bus,
  encode = asJson,
  name = "relay",
  onPublished = measureDelay,
  ...options
}: RelayOptions): Worker {
  let unavailable = 0;

  /** Publishes events of different aggregates at once; answers each in its place. */
  async function publishWave(jobs: readonly Job[], leases: Leases): Promise<readonly Outcome[]> {
    const encoded = jobs.map(encodeSafely);
    const ready = jobs.flatMap((job, place) => {
      const payload = encoded[place];
      return payload instanceof Uint8Array ? [{ job, payload }] : [];
    });
    const outcomes = ready.length > 0 ? await publish(ready, leases) : [];
    // What the bus gives back untried (it is full, nobody has a queue) is not to be taken right back.
    leases.rest(Math.max(0, ...outcomes.map((outcome) => (outcome.kind === "release" ? outcome.inMs : 0))));
    const answers = outcomes.values();
    return jobs.map((job, place) => {
      const payload = encoded[place];
      return backedOff(job, (payload instanceof Uint8Array ? answers.next().value : payload) as Outcome);
    });
  }

  /** Others say that an event should be tried again; when is ours to say, for only we know how often it was. */
  function backedOff(job: Job, outcome: Outcome): Outcome {
    return outcome.kind === "retry"
      ? retry(backoffMs(job.claim.attempt, options.settings?.backoff), outcome.why)
      : outcome;
  }

  function encodeSafely(job: Job): Uint8Array | Outcome {
    try {
      return encode(job);
    } catch (error) {
      if (isPerhapsNewer(error)) return retry(0, error.message);
      return dead(`cannot be encoded: ${describeError(error)}`);
    }
  }

  async function publish(ready: readonly Encoded[], leases: Leases): Promise<readonly Outcome[]> {
    const startedAt = performance.now();
    const spans = ready.map(({ job }) => spanOf(job));
    const outcomes = await askBus(
      ready.map(({ job, payload }, place) => envelope(job, payload, spans[place]?.headers)),
      leases,
    );
    const tookMs = performance.now() - startedAt;
    ready.forEach(({ job }, place) => {
      const outcome = outcomes[place];
      spans[place]?.end(outcome && "why" in outcome ? outcome.why : undefined);
      if (outcome?.kind !== "done") return;
      onPublished(job, (job.ageMs + tookMs) / 1_000);
    });
    return outcomes;
  }

  async function askBus(envelopes: readonly Envelope[], leases: Leases): Promise<readonly Outcome[]> {
    try {
      const outcomes = await bus.publish(envelopes);
      unavailable = 0;
      return outcomes;
    } catch (error) {
      if (!(error instanceof BusUnavailable)) return envelopes.map(() => retry(0, describeError(error)));
      count("todoke.outbox.unavailable", { worker: name });
      leases.rest(backoffMs(++unavailable, restBackoff));
      return envelopes.map(() => release(describeError(error)));
    }
  }

  return worker<OutboxEvent>({
    ...options,
    name,
    claims: outboxEvents,
    settings: { batchMax: 500, concurrency: 1_500, ...options.settings },
    run(jobs, leases) {
      const outcomes = inWaves(jobs, (wave) => publishWave(wave, leases));
      return jobs.map((_, place) => outcomes.then((all) => all[place] as Outcome));
    },
  });
}

/** Known by its mark, not by its class: the kernel has no contracts of its own. */
function isPerhapsNewer(error: unknown): error is Error {
  return error instanceof Error && "perhapsNewer" in error && error.perhapsNewer === true;
}

function measureDelay({ subject }: OutboxEvent, delaySeconds: number): void {
  observeValue("todoke.outbox.publish.delay", delaySeconds, { subject });
}

function spanOf(job: Job) {
  if (!isRecorded(job.headers)) return undefined;
  const attributes = { event_id: job.eventId, event_type: job.eventType, subject: job.subject };
  return startSpan(spanNames.publish, { kind: "producer", attributes, parent: job.headers });
}

function envelope(job: Job, payload: Uint8Array, headers = job.headers): Envelope {
  const { eventId, eventType, subject, aggregateKey, occurredAt } = job;
  return { eventId, eventType, subject, aggregateKey, occurredAt, headers, payload };
}
