/** The environment of a run: engines, a database with a role per process, fault proxies, processes and the webhook receiver. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Engine, startEngine } from "@todoke/engines";
import { type Db, openDb } from "@todoke/kernel/db";
import { type FaultProxy, openFaultProxy } from "@todoke/kernel/testing";
import { openBus } from "./bus.ts";
import { apiKeys } from "./callers.ts";
import { watchedTables } from "./checks/claims.ts";
import { type Arrival, type Exit, files } from "./evidence.ts";
import { openLines } from "./history.ts";
import { type OrderBroker, openOrderBroker } from "./order-broker.ts";
import { planted as defects } from "./patches/index.ts";
import { seededRandom } from "./random.ts";
import { openReceiver, type Receiver } from "./receiver.ts";
import { type ServiceUnderTest, services } from "./services/index.ts";
import { type BusKind, backoff, workerSettings } from "./settings.ts";
import { Slot } from "./slot.ts";
import { prepareWatch, watch } from "./watch.ts";

export interface Harness extends AsyncDisposable {
  readonly bus: BusKind;
  readonly slots: readonly Slot[];
  readonly postgres: Engine;
  /** On the PostgreSQL bus this is `postgres`. */
  readonly messageBroker: Engine;
  /** Direct connection to the database, without a proxy. */
  readonly admin: Db;
  /** Proxy between the senders and the receiver. */
  readonly webhook: FaultProxy;
  readonly receiver: Receiver;
  /** The order broker, and the proxy between it and the senders. */
  readonly orderBroker: OrderBroker;
  readonly orderBrokerProxy: FaultProxy;
  readonly exits: readonly Exit[];
  /** Number of unfinished jobs; undefined while the database is unavailable. */
  unfinished(): Promise<number | undefined>;
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
  const admin = openDb({ url: postgres.url, poolMax: 4, statementTimeoutMs: 120_000, schema: "public" });
  up.defer(() => admin.end());
  await prepareDatabase({ admin, url: postgres.url, bus });
  const receiver = up.use(
    await openReceiver(up.use(openLines<Arrival>(join(folder, files.arrivals))), seededRandom("receiver")),
  );
  const webhook = up.use(await openFaultProxy(receiver.url));
  const orderBroker = up.use(await openOrderBroker());
  const orderBrokerProxy = up.use(await openFaultProxy(orderBroker.url.href));
  const exits: Exit[] = [];

  async function createSlot(service: ServiceUnderTest, copy: number): Promise<Slot> {
    const name = `${service.name}_${copy}`;
    await admin.query(`create role ${name} login superuser password 'chaos'`);
    const database = up.use(await openFaultProxy(withRole(postgres.url, name)));
    const busProxy = up.use(
      await openFaultProxy(bus === "postgres" ? withRole(postgres.url, name) : messageBroker.url),
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
        DATABASE_URL: database.url,
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
    admin,
    webhook,
    receiver,
    orderBroker,
    orderBrokerProxy,
    exits,
    unfinished: () => unfinished(admin, bus),
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

function withRole(url: string, role: string): string {
  const own = new URL(url);
  own.username = role;
  own.password = "chaos";
  return own.href;
}

/** Migrates all schemas and installs the triggers on claimed tables. */
async function prepareDatabase({ admin, url, bus }: { admin: Db; url: string; bus: BusKind }): Promise<void> {
  for (const service of services) {
    const { migrate } = await service.load();
    const nowhere = "http://127.0.0.1:1/";
    const own = service.env({ webhookUrl: nowhere, orderBrokerUrl: nowhere });
    await migrate({ DATABASE_URL: url, TODOKE_API_KEYS: apiKeys, ...own }, { dryRun: false });
  }
  // The PostgreSQL bus creates its tables when it is opened.
  if (bus === "postgres") await (await openBus(bus, { url, name: "chaos" }))[Symbol.asyncDispose]();
  await prepareWatch(admin);
  for (const { name, tables } of services) for (const table of tables) await watch(admin, name, table);
  const deliveries = watchedTables.find(({ table }) => table === "bus_deliveries");
  if (bus === "postgres" && deliveries) await watch(admin, "todoke_bus", deliveries);
}

async function unfinished(admin: Db, bus: BusKind): Promise<number | undefined> {
  const questions = services.map((service) => service.unfinished);
  if (bus === "postgres")
    questions.push(`select count(*)::int as unfinished from todoke_bus.bus_deliveries where status <> 'DONE'`);
  try {
    const counts = await Promise.all(questions.map(async (sql) => (await admin.query(sql)).rows[0].unfinished));
    return counts.reduce((sum, count) => sum + count, 0);
  } catch {
    return undefined;
  }
}

/** Resolves when the engine's server has exited. */
export async function waitForExit(engine: Engine): Promise<void> {
  while (engine.pid !== undefined) await sleep(20);
}
