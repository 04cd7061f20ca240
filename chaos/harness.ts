/**
 * What a run takes place on: engines of its own, a database with a role for every process, wires between everything,
 * the processes, and the receiver. Disposing it ends all of that, whatever state it is in.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Engine, startEngine } from "@todoke/engines";
import { type Db, openDb } from "@todoke/kernel/db";
import { openWire, type Wire } from "@todoke/kernel/testing";
import { openBus } from "./bus.ts";
import { apiKeys } from "./callers.ts";
import { watchedTables } from "./checks/claims.ts";
import { type Arrival, type Exit, files } from "./evidence.ts";
import { openLines } from "./history.ts";
import { type OrderBroker, openOrderBroker } from "./order-broker.ts";
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
  /** The broker; on the PostgreSQL bus it is `postgres`. */
  readonly messageBroker: Engine;
  /** Straight to the database, past all wires: for the checker and the nemesis. */
  readonly admin: Db;
  /** Between the senders and the receiver. */
  readonly webhook: Wire;
  readonly receiver: Receiver;
  /** The broker of orders, and the wire between it and the senders. */
  readonly orderBroker: OrderBroker;
  readonly orderBrokerProxy: Wire;
  readonly exits: readonly Exit[];
  /** How many things are still to be done; undefined while the database cannot be asked. */
  unfinished(): Promise<number | undefined>;
}

export interface HarnessOptions {
  readonly bus: BusKind;
  readonly folder: string;
  /** A defect that the processes are to have. */
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
  const webhook = up.use(await openWire(receiver.url));
  const orderBroker = up.use(await openOrderBroker());
  const orderBrokerProxy = up.use(await openWire(orderBroker.url.href));
  const exits: Exit[] = [];

  async function slotOf(service: ServiceUnderTest, copy: number): Promise<Slot> {
    const name = `${service.name}_${copy}`;
    await admin.query(`create role ${name} login superuser password 'chaos'`);
    const database = up.use(await openWire(withRole(postgres.url, name)));
    const busWire = up.use(await openWire(bus === "postgres" ? withRole(postgres.url, name) : messageBroker.url));
    return new Slot({
      name,
      service: service.name,
      skewMs: 0,
      bus: { kind: bus, url: busWire.url },
      database,
      busWire,
      logFile: join(folder, "logs", `${name}.log`),
      onExit: (exit) => void exits.push(exit),
      env: {
        PATH: process.env.PATH ?? "",
        DATABASE_URL: database.url,
        LOG_LEVEL: "warn",
        TODOKE_API_KEYS: apiKeys,
        ...(planted !== undefined && { CHAOS_PLANTED: planted }),
        ...workerEnv(service.name),
        ...service.env({ webhookUrl: webhook.url, orderBrokerUrl: orderBrokerProxy.url }),
      },
    });
  }

  const slots: Slot[] = [];
  for (const service of services)
    for (let copy = 1; copy <= service.copies; copy++) slots.push(await slotOf(service, copy));
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

/** The times of a run, as every service takes them. */
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

/** Schemas, and our watch over the tables that are worked. */
async function prepareDatabase({ admin, url, bus }: { admin: Db; url: string; bus: BusKind }): Promise<void> {
  for (const service of services) {
    const { migrate } = await service.load();
    const nowhere = "http://127.0.0.1:1/";
    const own = service.env({ webhookUrl: nowhere, orderBrokerUrl: nowhere });
    await migrate({ DATABASE_URL: url, TODOKE_API_KEYS: apiKeys, ...own }, { dryRun: false });
  }
  // The bus on PostgreSQL makes its tables when it is opened.
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

/** An engine's server that was told to stop is gone when its engine says so. */
export async function untilGone(engine: Engine): Promise<void> {
  while (engine.pid !== undefined) await sleep(20);
}
