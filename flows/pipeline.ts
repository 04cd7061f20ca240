/** Program that flows run as child processes: a relay, a consumer or both, with named points at which it dies or waits. */
import type { EventBus, Handler } from "@todoke/kernel/bus";
import { type Db, openDb, type Tx } from "@todoke/kernel/db";
import { openInbox } from "@todoke/kernel/inbox";
import { createRelay } from "@todoke/kernel/outbox";
import { type BusAddress, consumer, openBus, subject } from "./buses.ts";

/** Points at which a crash matters. Each is reached once per batch. */
export type Point = "claimed" | "published" | "settling" | "effect" | "handled";

export interface PipelineOptions {
  readonly databaseUrl: string;
  readonly bus: BusAddress;
  readonly roles: readonly ("relay" | "consumer")[];
  readonly leaseMs: number;
  readonly attemptsMax: number;
  /** The action when a point is reached for the n-th time. */
  readonly at?: { readonly point: Point; readonly nth: number; readonly do: "die" | "hold" };
}

export type Report = { readonly held: Point } | { readonly leaseLost: number } | { readonly started: true };

const options: PipelineOptions = JSON.parse(process.argv[2] ?? "{}");
const sendReport = (report: Report) => process.send?.(report);
const resumed = Promise.withResolvers<void>();
process.once("message", () => resumed.resolve());

let reached = 0;

/** Kills this process without clean-up, or waits until the parent resumes it. */
async function reach(point: Point): Promise<void> {
  if (options.at?.point !== point || ++reached !== options.at.nth) return;
  if (options.at.do === "die") process.kill(process.pid, "SIGKILL");
  sendReport({ held: point });
  await resumed.promise;
}

function withPoints(bus: EventBus): Pick<EventBus, "publish"> {
  return {
    async publish(events) {
      await reach("claimed");
      const outcomes = await bus.publish(events);
      await reach("published");
      return outcomes;
    },
  };
}

/** The settlement is sent, and its response is never read. */
function dyingWhileSettling(db: Db): Db {
  const query = db.query.bind(db) as (...args: unknown[]) => Promise<unknown>;
  return Object.assign(db, {
    query(config: { name?: string }, ...rest: unknown[]) {
      const result = query(config, ...rest);
      return config.name?.startsWith("settle outbox_events") ? reach("settling").then(() => result) : result;
    },
  });
}

async function effect(tx: Tx, names: readonly string[]): Promise<void> {
  for (const name of names) {
    await tx.query(
      `insert into effects (event_id, aggregate_key, version, payload)
                    select event_id, aggregate_key, version, payload from outbox_events where event_id = $1`,
      [name],
    );
    const { rows } = await tx.query(`select payload from outbox_events where event_id = $1`, [name]);
    if (rows[0]?.payload.deadly) process.kill(process.pid, "SIGKILL");
  }
  await reach("effect");
}

const db = openDb({ url: options.databaseUrl, schema: "app" });
const bus = await openBus(options.bus);

if (options.roles.includes("relay")) {
  const relay = createRelay({
    db: dyingWhileSettling(openDb({ url: options.databaseUrl, schema: "app" })),
    bus: withPoints(bus),
    settings: { batchMax: 10, concurrency: 20, leaseMs: options.leaseMs, pollMs: 50 },
  });
  if (options.at?.do === "hold") sendReport({ leaseLost: (await relay.runOnce()).leaseLost });
  else relay.start();
}

if (options.roles.includes("consumer")) {
  const { attemptsMax } = options;
  const inbox = openInbox<string>({
    db,
    consumer,
    decode: (event) => event.eventId,
    effect,
    attemptsMax,
    backoff: { baseMs: 10, capMs: 50 },
  });
  const handle: Handler = async (deliveries, stopping) => {
    const outcomes = await inbox.handle(deliveries, stopping);
    await reach("handled");
    return outcomes;
  };
  await bus.subscribe({ consumer, subjects: [subject], handle, batchMax: 10 });
}

sendReport({ started: true });
