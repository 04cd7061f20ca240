/** Publishes to and consumes from the tables of the bus. */
import {
  BusUnavailable,
  type ConsumerLag,
  type Delivery,
  type Envelope,
  type EventBus,
  type Handler,
  HandlerPool,
  type PublishingConsumer,
  type Subscription,
  type TransactionalHandler,
  type TransactionalPublisher,
} from "@todoke/kernel/bus";
import type { Claimed } from "@todoke/kernel/claims";
import {
  type AppliedMigration,
  afterCommit,
  CommitUnknown,
  type Db,
  directUrlOf,
  isUnavailable,
  migrate,
  migrationUrl,
  openDb,
} from "@todoke/kernel/db";
import { startRetention } from "@todoke/kernel/retention";
import { ContextError, logFields } from "@todoke/kernel/telemetry";
import {
  createDirectWorker,
  createWorker,
  dead,
  describeError,
  done,
  inAggregateOrder,
  type Outcome,
  release,
  retry,
  shareWakeups,
  type Worker,
  type WorkerOptions,
} from "@todoke/kernel/worker";
import { joinSubjects } from "./join.ts";
import { addLocalConsumer, findLocalConsumer, handleLocally, type LocalConsumer } from "./local-consumers.ts";
import {
  busMigrations,
  busRetention,
  completeDeliveries,
  deliveries,
  insertMessages,
  insertMessagesFor,
  insertMessagesIn,
  mayUseTables,
  readConsumerLag,
  readDatabaseId,
  readDurability,
  type StoredDelivery,
  selectWaitingDeliveries,
  unpackHeaders,
  type WaitingDelivery,
} from "./store.ts";

export interface PostgresBusOptions {
  readonly url: string;
  readonly schema?: string;
  /** For pg_stat_activity and locked_by. */
  readonly name?: string;
  /** How long a process may be silent before its deliveries go to another one. */
  readonly ackWaitMs?: number;
  readonly pollMs?: number;
  readonly payloadMaxBytes?: number;
  /** How long messages are kept after all their deliveries are done: for deduplication and for new consumers. */
  readonly keepMs?: number;
  readonly poolMax?: number;
  /** The most messages of the history of a new consumer that one transaction copies. */
  readonly historyBatchMax?: number;
  readonly onError?: (error: unknown) => void;
  /** Receives the progress of a consumer that joins with a long history. */
  readonly onInfo?: (message: string) => void;
}

const dayMs = 24 * 60 * 60 * 1_000;
const defaultSchema = "todoke_bus";

/** Brings its schema up to date and returns what was run; with `dryRun`, what would be run. */
export async function migratePostgresBus(
  url: string,
  { dryRun }: { readonly dryRun: boolean },
): Promise<readonly AppliedMigration[]> {
  const db = openDb({ url: migrationUrl(url, { dryRun }), poolMax: 1 });
  try {
    return await migrate(db, { schema: defaultSchema, sets: [busMigrations], dryRun });
  } finally {
    await db.end();
  }
}

/** Behind PgBouncer without a direct URL the tables are checked only. */
async function bringUpToDate(url: string, schema: string): Promise<void> {
  const dryRun = directUrlOf(url) === undefined;
  const db = openDb({ url: migrationUrl(url, { dryRun }), poolMax: 1 });
  try {
    const missing = await migrate(db, { schema, sets: [busMigrations], dryRun });
    if (dryRun && missing.length > 0) migrationUrl(url, { dryRun: false });
  } finally {
    await db.end();
  }
}

/** Reads what waits for a consumer without opening the bus, which would create its tables. Undefined if there is no bus. */
export async function readPostgresBusLag(url: string, consumer: string): Promise<ConsumerLag | undefined> {
  const db = openDb({ url, schema: defaultSchema, applicationName: "todoke doctor", poolMax: 1 });
  try {
    const { rows } = await db.query<{ exists: boolean }>(`select to_regclass('bus_deliveries') is not null as exists`);
    return rows[0]?.exists ? await readConsumerLag(db, consumer) : undefined;
  } finally {
    await db.end();
  }
}

/** Reads which deliveries of these events are not done, without opening the bus. Empty if there is no bus. */
export async function readPostgresDeliveries(
  url: string,
  eventIds: readonly string[],
): Promise<readonly WaitingDelivery[]> {
  const db = openDb({
    url,
    schema: defaultSchema,
    applicationName: "todoke bus",
    poolMax: 1,
    statementTimeoutMs: 2_000,
  });
  try {
    const { rows } = await db.query<{ exists: boolean }>(`select to_regclass('bus_deliveries') is not null as exists`);
    return rows[0]?.exists ? await selectWaitingDeliveries(db, eventIds) : [];
  } finally {
    await db.end();
  }
}

/** Creates or updates its schema too, unless that is up to date. */
export async function openPostgresBus(options: PostgresBusOptions): Promise<EventBus> {
  const { url, schema = defaultSchema, name = "bus", payloadMaxBytes = 8 * 1024 * 1024, onError } = options;
  const db = openDb({
    url,
    schema,
    applicationName: name,
    poolMax: options.poolMax ?? 6,
    ...(onError && { onConnectionError: onError }),
  });
  await bringUpToDate(url, schema).catch(async (error) => {
    await db.end();
    throw isUnavailable(error) ? unavailable(error) : error;
  });
  const wakeups = shareWakeups({ url, ...(onError && { onError }) });
  const retention = startRetention(db, busRetention(options.keepMs ?? 7 * dayMs), { ...(onError && { onError }) });
  const subscriptions = new Set<AsyncDisposable>();

  const topicOf = (subject: string) => `${schema}.${subject}`;

  function wakeConsumers(events: readonly Pick<Envelope, "subject">[]): void {
    for (const subject of new Set(events.map((event) => event.subject))) wakeups.signal(topicOf(subject));
  }

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
      return (await Promise.all(events.map((event) => publish([event])))).flat(); // A bad event fails alone.
    }
    wakeConsumers(events);
    return events.map((event) =>
      tooLarge(event)
        ? dead(`the payload has ${event.payload.byteLength} bytes; the limit is ${payloadMaxBytes}`)
        : done,
    );
  }

  /** Undefined unless transactions of `other` can change the tables of this bus. */
  async function findShared(other: Db) {
    const [own, theirs] = await Promise.all([readDatabaseId(db), readDatabaseId(other)]);
    if (own.id !== theirs.id || !(await mayUseTables(other, schema))) return undefined;
    return { schema: theirs.schema, database: `${theirs.id} ${theirs.user} ${schema}` };
  }

  function rejectLarge(events: readonly Envelope[]): void {
    const large = events.find((event) => event.payload.byteLength > payloadMaxBytes);
    if (large) throw new Error(`event ${large.eventId} is larger than ${payloadMaxBytes} bytes`);
  }

  async function openPublisher(other: Db): Promise<TransactionalPublisher | undefined> {
    const shared = await findShared(other);
    if (!shared) return undefined;
    const insert = insertMessagesIn(schema);
    /** Of the last event: the next one probably has the same consumer. */
    let lastSubject: string | undefined;

    function publishTo(consumer: LocalConsumer): PublishingConsumer["publish"] {
      const insertFor = insertMessagesFor(schema, consumer.consumer);
      return async (tx, events) => {
        rejectLarge(events);
        lastSubject = events.at(-1)?.subject;
        const stored = await insertFor(tx, events);
        const here = new Set(stored.flatMap((each) => (each.here ? [each.event_id] : [])));
        await handleLocally(
          consumer,
          tx,
          events.filter(({ eventId }) => here.has(eventId.toLowerCase())),
        );
        const delivered = stored.filter((each) => !each.here);
        if (delivered.length > 0) afterCommit(tx, () => wakeConsumers(delivered));
      };
    }

    return {
      async publish(tx, events) {
        rejectLarge(events);
        lastSubject = events.at(-1)?.subject;
        await insert(tx, events);
        afterCommit(tx, () => wakeConsumers(events));
      },
      findConsumer() {
        const consumer = lastSubject === undefined ? undefined : findLocalConsumer(shared.database, lastSubject);
        return consumer && { db: consumer.db, schema: shared.schema, publish: publishTo(consumer) };
      },
    };
  }

  async function subscribe(subscription: Subscription) {
    const { consumer, subjects, handle, inTransaction, batchMax = 100, concurrency = 1 } = subscription;
    const rejectUnavailable = (error: unknown) => {
      throw isUnavailable(error) ? unavailable(error) : error;
    };
    const shared = inTransaction && (await findShared(inTransaction.db).catch(rejectUnavailable));
    const joining = await joinSubjects({
      db,
      consumer,
      subjects,
      batchMax: options.historyBatchMax ?? 500,
      onCopied: () => consuming.wake(),
      onInfo: options.onInfo ?? (() => {}),
      onError: onError ?? (() => {}),
    }).catch(rejectUnavailable);
    const stopping = new AbortController();
    const runHandler = mergeBatches(handle, { concurrency, batchMax }, stopping.signal);
    const claimed: WorkerOptions<StoredDelivery> = {
      name: `${name} ${consumer}`,
      db,
      claims: deliveries,
      queue: consumer,
      settings: {
        batchMax,
        concurrency: batchMax * (concurrency + 1), // One more batch is claimed while the others are handled.
        leaseMs: options.ackWaitMs ?? 30_000,
        pollMs: options.pollMs ?? 1_000,
        attemptsMax: Number.MAX_SAFE_INTEGER, // The inbox of the consumer limits attempts.
      },
      run(jobs, leases) {
        const deliverable = jobs.filter(hasMessage);
        if (deliverable.length < jobs.length) onError?.(missingMessages(consumer, jobs.length - deliverable.length));
        if (deliverable.length === 0) return jobs.map(() => Promise.resolve(done));
        const outcomes = inAggregateOrder(deliverable.map(toClaimedDelivery), async (batch) =>
          (await runHandler(batch)).map(ackDead),
        );
        void outcomes.then((all) => leases.pause(pauseMs(all)));
        let nextIndex = 0;
        return jobs.map((job) => {
          if (!hasMessage(job)) return Promise.resolve(done);
          const index = nextIndex++;
          return outcomes.then((all) => all[index] as Outcome);
        });
      },
      ...(onError && { onError }),
    };
    const consuming =
      inTransaction && shared
        ? consumeInTransactions(claimed, inTransaction, { schema, batchMax })
        : createWorker(claimed);
    consuming.start();
    const local =
      inTransaction && shared
        ? addLocalConsumer({ ...inTransaction, database: shared.database, consumer, subjects, batchMax })
        : undefined;
    const unsubscribe = subjects.map((subject) => wakeups.on(topicOf(subject), () => consuming.wake()));
    const subscribed = {
      async [Symbol.asyncDispose]() {
        subscriptions.delete(subscribed);
        for (const stopWaking of unsubscribe) stopWaking();
        stopping.abort();
        await Promise.all([joining[Symbol.asyncDispose](), consuming.stop(), local?.[Symbol.asyncDispose]()]);
      },
    };
    subscriptions.add(subscribed);
    return subscribed;
  }

  let closed: Promise<void> | undefined;

  async function close(): Promise<void> {
    await Promise.all([...subscriptions].map((subscription) => subscription[Symbol.asyncDispose]()));
    await retention[Symbol.asyncDispose]();
    await wakeups[Symbol.asyncDispose]();
    await db.end();
  }

  return {
    publish,
    openPublisher,
    subscribe,
    async check() {
      const { version, off } = await readDurability(db).catch((error) => {
        throw unavailable(error);
      });
      const warnings = off.map(
        (setting) => `${setting} is off: a crash of the machine loses stored events. Turn it on.`,
      );
      return { engine: `PostgreSQL ${version}`, warnings };
    },
    readLag: (consumer) => readConsumerLag(db, consumer),
    [Symbol.asyncDispose]: () => (closed ??= close()),
  };
}

const unavailable = (cause: unknown) => new BusUnavailable("PostgreSQL is unavailable", { cause });

const hasMessage = (job: Claimed<StoredDelivery>): job is Claimed<Envelope> => job.eventId !== null;

/** Builds before 0002_joins could delete a message while its delivery was created. It cannot be delivered. */
const missingMessages = (consumer: string, count: number) =>
  new ContextError(`${count} deliveries to ${consumer} are settled undelivered: their messages are missing`, {
    context: { [logFields.consumer]: consumer },
  });

/** The transaction of the consumer deletes the deliveries: effect and ack are one commit. */
function consumeInTransactions(
  claimed: WorkerOptions<StoredDelivery>,
  { db, handle }: TransactionalHandler,
  { schema, batchMax }: { readonly schema: string; readonly batchMax: number },
): Worker {
  return createDirectWorker<StoredDelivery>({
    claimed,
    db,
    complete: completeDeliveries(schema),
    batchMax,
    async runInTransaction(tx, rows) {
      // The worker with claims reports deliveries without a message.
      if (rows.some(({ eventId }) => eventId === null)) throw new Error("a message is missing");
      await handle(
        tx,
        (rows as readonly Envelope[]).map((event) => toDelivery(event, { redelivered: false })),
      );
    },
  });
}

function toDelivery(event: Envelope, { redelivered }: { readonly redelivered: boolean }): Delivery {
  return { ...event, headers: unpackHeaders(event.headers), redelivered };
}

const toClaimedDelivery = ({ claim, ...event }: Claimed<Envelope>): Delivery =>
  toDelivery(event, { redelivered: claim.attempt > 1 });

/** The consumer has dead-lettered the event itself. For the bus it is done, so that the next one of the aggregate is delivered. */
const ackDead = (outcome: Outcome): Outcome => (outcome.kind === "dead" ? done : outcome);

/** If a consumer releases a whole batch (its database is unavailable), claiming it again at once would be a busy loop. */
function pauseMs(outcomes: readonly Outcome[]): number {
  const delays = outcomes.map((outcome) => (outcome.kind === "release" ? outcome.delayMs : 0));
  return Math.min(...delays, 5_000);
}

/**
 * Merges the deliveries of small claims that wait for a handler into one batch. At a stop, deliveries that no handler has seen
 * are released.
 */
function mergeBatches(
  handle: Handler,
  { concurrency, batchMax }: { concurrency: number; batchMax: number },
  stopping: AbortSignal,
): (deliveries: readonly Delivery[]) => Promise<readonly Outcome[]> {
  interface Waiting {
    readonly delivery: Delivery;
    readonly resolve: (outcome: Outcome) => void;
  }
  const handlers = new HandlerPool<Waiting>({
    handle,
    batchMax,
    concurrency,
    toDelivery: ({ delivery }) => delivery,
    settle: (batch, outcomes) => batch.forEach(({ resolve }, index) => void resolve(outcomes[index] as Outcome)),
    retryMs: 1_000,
    stopping,
  });
  const stopped = release("the consumer is stopping");
  stopping.addEventListener("abort", () => {
    for (const { resolve } of handlers.takeWaiting()) resolve(stopped);
  });
  return async (deliveries) => {
    if (stopping.aborted) return deliveries.map(() => stopped);
    const outcomes = deliveries.map(
      (delivery) => new Promise<Outcome>((resolve) => handlers.push({ delivery, resolve })),
    );
    return await Promise.all(outcomes);
  };
}
