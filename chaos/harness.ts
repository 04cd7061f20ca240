/** The environment of a run: engines, a database per service, fault proxies, processes and the webhook receiver. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Engine, startEngine } from "@todoke/engines";
import type { Db } from "@todoke/kernel/db";
import { type FaultProxy, openFaultProxy } from "@todoke/kernel/testing";
import { apiKeys } from "./callers.ts";
import { createDatabases, type Databases } from "./databases.ts";
import { type Arrival, type Exit, files } from "./evidence.ts";
import { openLines } from "./history.ts";
import { type OrderBroker, openOrderBroker } from "./order-broker.ts";
import { planted as defects } from "./patches/index.ts";
import { seededRandom } from "./random.ts";
import { openReceiver, type Receiver } from "./receiver.ts";
import { type ServiceUnderTest, services } from "./services/index.ts";
import { type BusKind, backoff, workerSettings } from "./settings.ts";
import { Slot } from "./slot.ts";

export interface Harness extends AsyncDisposable {
  readonly bus: BusKind;
  readonly slots: readonly Slot[];
  readonly postgres: Engine;
  /** On the PostgreSQL bus this is `postgres`. */
  readonly messageBroker: Engine;
  readonly databases: Databases;
  /** The bus, without a proxy. */
  readonly busUrl: string;
  /** Proxy between the senders and the receiver. */
  readonly webhook: FaultProxy;
  readonly receiver: Receiver;
  /** The order broker, and the proxy between it and the senders. */
  readonly orderBroker: OrderBroker;
  readonly orderBrokerProxy: FaultProxy;
  readonly exits: readonly Exit[];
  /** Whether all work is finished; false while the database is unavailable. */
  isQuiet(): Promise<boolean>;
}

export interface HarnessOptions {
  readonly bus: BusKind;
  readonly folder: string;
  /** A planted defect. */
  readonly planted?: string;
}

export async function createHarness({ bus, folder, planted }: HarnessOptions): Promise<Harness> {
  await using up = new AsyncDisposableStack();
  mkdirSync(join(folder, "logs"), { recursive: true });
  const postgres = up.use(await startEngine("postgres"));
  const messageBroker = bus === "postgres" ? postgres : up.use(await startEngine(bus));
  const databases = up.use(await createDatabases(postgres.url, bus));
  const receiver = up.use(
    await openReceiver(up.use(openLines<Arrival>(join(folder, files.arrivals))), seededRandom("receiver")),
  );
  const webhook = up.use(await openFaultProxy(receiver.url));
  const orderBroker = up.use(await openOrderBroker());
  const orderBrokerProxy = up.use(await openFaultProxy(orderBroker.url.href));
  const exits: Exit[] = [];

  async function createSlot(service: ServiceUnderTest, copy: number): Promise<Slot> {
    const name = `${service.name}_${copy}`;
    await databases.createRole(name, service.name);
    const database = up.use(await openFaultProxy(databases.urlOf(service.name, name)));
    const busProxy = up.use(
      await openFaultProxy(bus === "postgres" ? databases.urlOf("bus", name) : messageBroker.url),
    );
    return new Slot({
      name,
      service: service.name,
      skewMs: 0,
      bus: { kind: bus, url: busProxy.url },
      database,
      busProxy,
      logFile: join(folder, "logs", `${name}.log`),
      onExit: (exit) => void exits.push(exit),
      env: {
        PATH: process.env.PATH ?? "",
        [`${service.name.toUpperCase()}_DATABASE_URL`]: database.url,
        LOG_LEVEL: "warn",
        TODOKE_API_KEYS: apiKeys,
        ...(planted !== undefined && { CHAOS_PLANTED: planted }),
        ...(isClaimsOnly(copy, planted) && { CHAOS_CLAIMS_ONLY: "true" }),
        ...workerEnv(service.name),
        ...service.env({ webhookUrl: webhook.url, orderBrokerUrl: orderBrokerProxy.url }),
      },
    });
  }

  const slots: Slot[] = [];
  for (const service of services)
    for (let copy = 1; copy <= service.copies; copy++) slots.push(await createSlot(service, copy));
  up.defer(async () => void (await Promise.all(slots.map((slot) => slot.end("kill")))));
  for (const slot of slots) slot.start();
  await Promise.all(slots.map((slot) => slot.up()));

  const rest = up.move();
  return {
    bus,
    slots,
    postgres,
    messageBroker,
    databases,
    busUrl: bus === "postgres" ? databases.urlOf("bus") : messageBroker.url,
    webhook,
    receiver,
    orderBroker,
    orderBrokerProxy,
    exits,
    isQuiet: () => isQuiet(databases).catch(() => false),
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

/**
 * Every second copy works by claims only, as on another bus, so that both ways meet on the same rows. A planted defect is in
 * one of the ways, and all copies take it.
 */
function isClaimsOnly(copy: number, planted: string | undefined): boolean {
  if (planted === undefined) return copy % 2 === 0;
  const name = planted.replace("control:", "");
  return defects.find((defect) => defect.name === name)?.broughtOutBy?.inTransactions !== true;
}

/** Worker settings of a run, as environment variables. */
function workerEnv(service: string): Record<string, string> {
  const name = service.toUpperCase().replaceAll("-", "_");
  return {
    [`${name}_LEASE_MS`]: String(workerSettings.leaseMs),
    [`${name}_POLL_MS`]: String(workerSettings.pollMs),
    [`${name}_BACKOFF_BASE_MS`]: String(backoff.baseMs),
    [`${name}_BACKOFF_CAP_MS`]: String(backoff.capMs),
  };
}

/** In the order in which work flows, so that nothing can move on to a part that was looked at before. */
async function isQuiet(databases: Databases): Promise<boolean> {
  const consuming = services.filter(({ consumes }) => consumes);
  for (const service of services.filter((each) => !consuming.includes(each)))
    if ((await countUnfinished(databases, service)) > 0) return false;
  if (databases.names.includes("bus") && (await count(databases.of("bus"), openDeliveries)) > 0) return false;
  for (const service of consuming) {
    if (await hasUnprocessed(databases, service.name)) return false;
    if ((await countUnfinished(databases, service)) > 0) return false;
  }
  return true;
}

const openDeliveries = `select count(*)::int as unfinished from todoke_bus.bus_deliveries where status <> 'DONE'`;

const count = async (db: Db, sql: string): Promise<number> => (await db.query(sql)).rows[0].unfinished;

const countUnfinished = (databases: Databases, { name, unfinished }: ServiceUnderTest): Promise<number> =>
  count(databases.of(name), unfinished);

/** Whether an event is in an outbox and not processed by the consumer. */
async function hasUnprocessed(databases: Databases, consumer: string): Promise<boolean> {
  const idsIn = async (service: string, table: string) =>
    (await databases.of(service).query(`select event_id::text as id from ${service}.${table}`)).rows.map(
      ({ id }) => id,
    );
  const processed = new Set(await idsIn(consumer, "processed_events"));
  for (const { name } of services.filter(({ publishes }) => publishes))
    if ((await idsIn(name, "outbox_events")).some((id) => !processed.has(id))) return true;
  return false;
}

/** Resolves when the engine's server has exited. */
export async function waitForExit(engine: Engine): Promise<void> {
  while (engine.pid !== undefined) await sleep(20);
}
