/**
 * Carries committed events to the bus. Nothing else in Todoke publishes.
 *
 * A batch is claimed, published and settled in one statement or call each. Events of one aggregate go one after the
 * other, the next only when the one before is stored. When the bus cannot be reached nothing is held against the events:
 * they go back with their attempts, and the relay rests.
 */
import { type Envelope, type EventBus, BusUnavailable } from "../bus/index.ts";
import type { Claimed } from "../claims/index.ts";
import { count, observeValue, spanNames, startSpan } from "../telemetry/index.ts";
import {
  backoffMs,
  dead,
  describeError,
  type Lease,
  type Outcome,
  release,
  retry,
  type Worker,
  type WorkerOptions,
  worker,
} from "../worker/index.ts";
import { type OutboxEvent, outboxEvents } from "./store.ts";

export interface RelayOptions extends Pick<WorkerOptions<OutboxEvent>, "db" | "settings" | "wakeups" | "topic" | "onError"> {
  readonly bus: Pick<EventBus, "publish">;
  /** Turns the event's JSON into what travels. A throw means that it never can be: the event is FAILED at once. */
  readonly encode?: (event: { eventType: string; payload: string }) => Uint8Array;
  readonly name?: string;
}

type Job = Claimed<OutboxEvent>;

const asJson = ({ payload }: { payload: string }) => new TextEncoder().encode(payload);

// While the bus is away, ask again after 0.1 s, then less and less often, at most every 5 s or so.
const restBackoff = { baseMs: 50, capMs: 5_000 };

export function relay({ bus, encode = asJson, name = "relay", ...options }: RelayOptions): Worker {
  let unavailable = 0;

  async function publishAll(jobs: readonly Job[], lease: Lease): Promise<Map<Job, Outcome>> {
    const outcomes = new Map<Job, Outcome>();
    const stuck = new Set<string>();
    for (const wave of waves(jobs)) {
      const going = wave.filter((job) => !stuck.has(job.aggregateKey));
      for (const job of wave) outcomes.set(job, behindAnother);
      for (const [job, outcome] of await publishWave(going, lease)) {
        outcomes.set(job, outcome);
        if (outcome.kind !== "done") stuck.add(job.aggregateKey);
      }
    }
    return outcomes;
  }

  async function publishWave(jobs: readonly Job[], lease: Lease): Promise<(readonly [Job, Outcome])[]> {
    const encoded = jobs.map((job) => [job, encodeSafely(job)] as const);
    const ready = encoded.filter((pair): pair is readonly [Job, Uint8Array] => pair[1] instanceof Uint8Array);
    const refused = encoded.filter((pair): pair is readonly [Job, Outcome] => !(pair[1] instanceof Uint8Array));
    const outcomes = ready.length > 0 ? await publish(ready, lease) : [];
    return [...refused, ...ready.map(([job], place) => [job, backedOff(job, outcomes[place] as Outcome)] as const)];
  }

  /** The bus says that an event should be tried again; when is ours to say, for only we know how often it was. */
  function backedOff(job: Job, outcome: Outcome): Outcome {
    return outcome.kind === "retry" ? retry(backoffMs(job.claim.attempt, options.settings?.backoff), outcome.why) : outcome;
  }

  function encodeSafely(job: Job): Uint8Array | Outcome {
    try {
      return encode(job);
    } catch (error) {
      return dead(`cannot be encoded: ${describeError(error)}`);
    }
  }

  async function publish(ready: readonly (readonly [Job, Uint8Array])[], lease: Lease): Promise<readonly Outcome[]> {
    const startedAt = performance.now();
    const spans = ready.map(([job]) => spanOf(job));
    const outcomes = await askBus(ready.map(([job, payload], place) => envelope(job, payload, spans[place]?.headers)), lease);
    outcomes.forEach((outcome, place) => {
      spans[place]?.end("why" in outcome ? outcome.why : undefined);
      const job = ready[place]?.[0];
      if (outcome.kind === "done" && job) {
        const delayMs = job.ageMs + performance.now() - startedAt;
        observeValue("todoke.outbox.publish.delay", delayMs / 1_000, { subject: job.subject });
      }
    });
    return outcomes;
  }

  async function askBus(envelopes: readonly Envelope[], lease: Lease): Promise<readonly Outcome[]> {
    try {
      const outcomes = await bus.publish(envelopes);
      unavailable = 0;
      return outcomes;
    } catch (error) {
      if (!(error instanceof BusUnavailable)) return envelopes.map(() => retry(0, describeError(error)));
      count("todoke.outbox.unavailable", { worker: name });
      lease.rest(backoffMs(++unavailable, restBackoff));
      return envelopes.map(() => release(describeError(error)));
    }
  }

  return worker<OutboxEvent>({
    ...options,
    name,
    claims: outboxEvents,
    settings: { batchMax: 200, concurrency: 400, ...options.settings },
    run(jobs, lease) {
      const outcomes = publishAll(jobs, lease);
      return jobs.map((job) => outcomes.then((all) => all.get(job) as Outcome));
    },
  });
}

const behindAnother = release("an event of the same aggregate before it was not published");

/** The first event of each aggregate, then the second of each, and so on. Claimed rows come in their order. */
function waves(jobs: readonly Job[]): Job[][] {
  const seen = new Map<string, number>();
  const result: Job[][] = [];
  for (const job of jobs) {
    const nth = seen.get(job.aggregateKey) ?? 0;
    seen.set(job.aggregateKey, nth + 1);
    const wave = result[nth];
    if (wave) wave.push(job);
    else result.push([job]);
  }
  return result;
}

function spanOf(job: Job) {
  if (job.headers.traceparent === undefined) return undefined;
  const attributes = { event_id: job.eventId, event_type: job.eventType, subject: job.subject };
  return startSpan(spanNames.publish, { kind: "producer", attributes, parent: job.headers });
}

function envelope(job: Job, payload: Uint8Array, headers = job.headers): Envelope {
  const { eventId, eventType, subject, aggregateKey, occurredAt } = job;
  return { eventId, eventType, subject, aggregateKey, occurredAt, headers, payload };
}
