/** Publishes into, and consumes from, the tables of the bus. */
import {
  BusUnavailable,
  type Delivery,
  type Envelope,
  type EventBus,
  type Handle,
  type Subscription,
} from "@todoke/kernel/bus";
import type { Claimed } from "@todoke/kernel/claims";
import { CommitUnknown, isUnavailable, migrate, openDb } from "@todoke/kernel/db";
import { keepClean } from "@todoke/kernel/retention";
import { ErrorAbout, logFields } from "@todoke/kernel/telemetry";
import {
  backoffMs,
  dead,
  describeError,
  done,
  inWaves,
  type Outcome,
  openWakeups,
  release,
  retry,
  worker,
} from "@todoke/kernel/worker";
import { joinSubjects } from "./join.ts";
import {
  busMigrations,
  busRetention,
  deliveries,
  insertMessages,
  readDurability,
  type StoredDelivery,
} from "./store.ts";

export interface PostgresBusOptions {
  readonly url: string;
  readonly schema?: string;
  /** For pg_stat_activity and locked_by. */
  readonly name?: string;
  /** How long a consumer's process may be silent before its messages go to another. */
  readonly ackWaitMs?: number;
  readonly pollMs?: number;
  readonly payloadMaxBytes?: number;
  /** How long messages stay after everybody had them: for dedupe, and for consumers to come. */
  readonly keepMs?: number;
  readonly poolMax?: number;
  /** The most messages of the history of a new consumer that one transaction copies. */
  readonly historyBatchMax?: number;
  readonly onError?: (error: unknown) => void;
  /** Hears how far a new consumer is that is being given a long history. */
  readonly onInfo?: (message: string) => void;
}

const dayMs = 24 * 60 * 60 * 1_000;

export async function openPostgresBus(options: PostgresBusOptions): Promise<EventBus> {
  const { url, schema = "todoke_bus", name = "bus", payloadMaxBytes = 8 * 1024 * 1024, onError } = options;
  const db = openDb({
    url,
    schema,
    applicationName: name,
    poolMax: options.poolMax ?? 6,
    ...(onError && { onConnectionError: onError }),
  });
  await migrate(db, { schema, sets: [busMigrations] }).catch(async (error) => {
    await db.end();
    throw isUnavailable(error) ? unavailable(error) : error;
  });
  const wakeups = openWakeups({ url, ...(onError && { onError }) });
  const cleaning = keepClean(db, busRetention(options.keepMs ?? 7 * dayMs), { ...(onError && { onError }) });
  const subscriptions = new Set<AsyncDisposable>();

  async function publish(events: readonly Envelope[]): Promise<readonly Outcome[]> {
    const tooLarge = (event: Envelope) => event.payload.byteLength > payloadMaxBytes;
    try {
      await insertMessages(
        db,
        events.filter((event) => !tooLarge(event)),
      );
    } catch (error) {
      if (error instanceof CommitUnknown) return events.map(() => retry(0, describeError(error)));
      if (isUnavailable(error)) throw unavailable(error);
      if (events.length === 1) return [retry(0, describeError(error))];
      return (await Promise.all(events.map((event) => publish([event])))).flat(); // One bad event fails alone.
    }
    wakeups.signal(schema);
    return events.map((event) =>
      tooLarge(event)
        ? dead(`the payload has ${event.payload.byteLength} bytes; the bus takes ${payloadMaxBytes}`)
        : done,
    );
  }

  async function subscribe({ consumer, subjects, handle, batchMax = 100, concurrency = 1 }: Subscription) {
    const joining = await joinSubjects({
      db,
      consumer,
      subjects,
      batchMax: options.historyBatchMax ?? 500,
      onCopied: () => consuming.wake(),
      onInfo: options.onInfo ?? (() => {}),
      onError: onError ?? (() => {}),
    }).catch((error) => {
      throw isUnavailable(error) ? unavailable(error) : error;
    });
    const stopping = new AbortController();
    const handOver = joined(handle, { width: concurrency, batchMax }, stopping.signal);
    const consuming = worker<StoredDelivery>({
      name: `${name} ${consumer}`,
      db,
      claims: deliveries,
      queue: consumer,
      wakeups,
      topic: schema,
      settings: {
        batchMax,
        concurrency: batchMax * (concurrency + 1), // one batch waits, claimed, while the others are handled
        leaseMs: options.ackWaitMs ?? 30_000,
        pollMs: options.pollMs ?? 1_000,
        attemptsMax: Number.MAX_SAFE_INTEGER, // The consumer decides when to give up.
      },
      run(jobs, leases) {
        const present = jobs.filter(hasMessage);
        if (present.length < jobs.length) onError?.(messagesGone(consumer, jobs.length - present.length));
        if (present.length === 0) return jobs.map(() => Promise.resolve(done));
        const outcomes = inWaves(present.map(delivery), async (wave) => (await handOver(wave)).map(putAway));
        void outcomes.then((all) => leases.rest(restMs(all)));
        let presentBefore = 0;
        return jobs.map((job) => {
          if (!hasMessage(job)) return Promise.resolve(done);
          const index = presentBefore++;
          return outcomes.then((all) => all[index] as Outcome);
        });
      },
      ...(onError && { onError }),
    });
    consuming.start();
    const subscription = {
      async [Symbol.asyncDispose]() {
        subscriptions.delete(subscription);
        stopping.abort();
        await Promise.all([joining[Symbol.asyncDispose](), consuming.stop()]);
      },
    };
    subscriptions.add(subscription);
    return subscription;
  }

  let closed: Promise<void> | undefined;

  async function close(): Promise<void> {
    await Promise.all([...subscriptions].map((subscription) => subscription[Symbol.asyncDispose]()));
    await cleaning[Symbol.asyncDispose]();
    await wakeups[Symbol.asyncDispose]();
    await db.end();
  }

  return {
    publish,
    subscribe,
    async check() {
      const { version, off } = await readDurability(db).catch((error) => {
        throw unavailable(error);
      });
      const warnings = off.map(
        (setting) => `${setting} is off: a crash of the machine loses stored events; turn it on`,
      );
      return { engine: `PostgreSQL ${version}`, warnings };
    },
    [Symbol.asyncDispose]: () => (closed ??= close()),
  };
}

const unavailable = (cause: unknown) => new BusUnavailable("PostgreSQL cannot be reached", { cause });

const hasMessage = (job: Claimed<StoredDelivery>): job is Claimed<Envelope> => job.eventId !== null;

/** Builds before 0002_joins could delete a message that a joining consumer was just given. Nobody can deliver it any more. */
const messagesGone = (consumer: string, count: number) =>
  new ErrorAbout(`${count} deliveries to ${consumer} are settled without being delivered: their messages are gone`, {
    about: { [logFields.consumer]: consumer },
  });

function delivery({ claim, ...event }: Claimed<Envelope>): Delivery {
  return { ...event, redelivered: claim.attempt > 1 };
}

/** What a consumer gives up it has put away itself: for the bus it is done, and the next of its aggregate may come. */
const putAway = (outcome: Outcome): Outcome => (outcome.kind === "dead" ? done : outcome);

/** When a consumer gives a whole batch back (its database is away), taking it again at once would be a loop without rest. */
function restMs(outcomes: readonly Outcome[]): number {
  const delays = outcomes.map((outcome) => (outcome.kind === "release" ? outcome.inMs : 0));
  return Math.min(...delays, 5_000);
}

/**
 * Hands deliveries over as soon as one of `width` places is free, and together with all that came meanwhile: claims that
 * brought a few each do not stand in line one behind the other. At a stop, those that have not begun are given back.
 */
function joined(
  handle: Handle,
  { width, batchMax }: { width: number; batchMax: number },
  stopping: AbortSignal,
): (deliveries: readonly Delivery[]) => Promise<readonly Outcome[]> {
  interface Waiting {
    readonly delivery: Delivery;
    readonly answer: (outcome: Outcome) => void;
  }
  const waiting: Waiting[] = [];
  let free = width;

  function pump(): void {
    while (free > 0 && waiting.length > 0) {
      free--;
      void handOver(waiting.splice(0, batchMax)).finally(() => {
        free++;
        pump();
      });
    }
  }

  async function handOver(batch: readonly Waiting[]): Promise<void> {
    const outcomes = await outcomesOf(batch.map(({ delivery }) => delivery));
    batch.forEach(({ answer }, place) => void answer(outcomes[place] ?? unanswered));
  }

  async function outcomesOf(deliveries: readonly Delivery[]): Promise<readonly Outcome[]> {
    try {
      return await handle(deliveries, stopping);
    } catch (error) {
      return deliveries.map(() => retry(backoffMs(1), describeError(error)));
    }
  }

  const unanswered = release("the consumer did not answer for it");
  const giveBack = release("the consumer is stopping");
  stopping.addEventListener("abort", () => {
    for (const { answer } of waiting.splice(0)) answer(giveBack);
  });
  return async (deliveries) => {
    if (stopping.aborted) return deliveries.map(() => giveBack);
    const answers = deliveries.map(
      (delivery) => new Promise<Outcome>((answer) => void waiting.push({ delivery, answer })),
    );
    pump();
    return await Promise.all(answers);
  };
}
