/** The environment of a run: engines, a database per service, fault proxies, processes and the webhook receiver. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { consumers } from "@todoke/contracts";
import { type Engine, startEngine } from "@todoke/engines";
import { startIdentityProvider } from "@todoke/identity";
import { type FaultProxy, openFaultProxy } from "@todoke/kernel/testing";
import { openBalancer } from "./balancer.ts";
import { apiKeys } from "./callers.ts";
import { createDatabases, type Databases, schemaOf } from "./databases.ts";
import { type Arrival, type Exit, files } from "./evidence.ts";
import { openLines } from "./history.ts";
import { type OrderBroker, openOrderBroker } from "./order-broker.ts";
import { planted as defects } from "./patches/index.ts";
import { seededRandom } from "./random.ts";
import { openReceiver, type Receiver } from "./receiver.ts";
import { processName, type ServiceUnderTest, selectServices } from "./services/index.ts";
import { gatewaySecret, providerUsers } from "./services/players.ts";
import { type BusKind, backoff, workerSettings } from "./settings.ts";
import { Slot } from "./slot.ts";

export interface Harness extends AsyncDisposable {
  readonly bus: BusKind;
  readonly services: readonly ServiceUnderTest[];
  readonly slots: readonly Slot[];
  readonly postgres: Engine;
  /** On the PostgreSQL bus this is `postgres`. */
  readonly messageBroker: Engine;
  /** The Redis of matchmaking: on every bus but PostgreSQL. */
  readonly redis?: Engine | undefined;
  readonly databases: Databases;
  /** The bus, without a proxy. */
  readonly busUrl: string;
  /** Proxy between the senders and the receiver. */
  readonly webhook: FaultProxy;
  readonly receiver: Receiver;
  /** The order broker, and the proxy between it and the senders. */
  readonly orderBroker: OrderBroker;
  readonly orderBrokerProxy: FaultProxy;
  /** The gateway, as browsers reach it. */
  readonly gatewayUrl: string;
  readonly exits: readonly Exit[];
  /** Whether all work is finished; false while the database is unavailable. */
  isQuiet(): Promise<boolean>;
}

export interface HarnessOptions {
  readonly bus: BusKind;
  readonly folder: string;
  /** Duration of the load. */
  readonly forMs: number;
  /** Names of the services to run. Default: all. */
  readonly services?: readonly string[] | undefined;
  /** A planted defect. */
  readonly planted?: string;
}

export async function createHarness({ bus, folder, forMs, planted, ...options }: HarnessOptions): Promise<Harness> {
  const services = selectServices(options.services);
  await using up = new AsyncDisposableStack();
  mkdirSync(join(folder, "logs"), { recursive: true });
  const postgres = up.use(await startEngine("postgres"));
  const messageBroker = bus === "postgres" ? postgres : up.use(await startEngine(bus));
  const hasRedis = bus !== "postgres" && services.some(({ name }) => name === "matchmaking");
  const redis = hasRedis ? up.use(await startEngine("redis")) : undefined;
  const databases = up.use(await createDatabases(postgres.url, { bus, services, forMs }));
  const receiver = up.use(
    await openReceiver(up.use(openLines<Arrival>(join(folder, files.arrivals))), seededRandom("receiver")),
  );
  const webhook = up.use(await openFaultProxy(receiver.url));
  const orderBroker = up.use(await openOrderBroker());
  const orderBrokerProxy = up.use(await openFaultProxy(orderBroker.url.href));
  const slots: Slot[] = [];
  const balancerOf = async (service: string) => {
    const targets = () => slots.flatMap((slot) => (slot.service === service && slot.http ? [slot.http.url] : []));
    return up.use(await openBalancer(targets)).url;
  };
  const [accountUrl, gatewayUrl] = [await balancerOf("account"), await balancerOf("gateway-bff")];
  const { issuer } = up.use(await openIdentityProvider(gatewayUrl));
  const exits: Exit[] = [];

  async function createSlot(service: ServiceUnderTest, copy: number): Promise<Slot> {
    const name = processName(service.name, copy);
    await databases.createRole(name, service.name);
    const database = up.use(await openFaultProxy(databases.urlOf(service.name, name)));
    const busProxy = up.use(
      await openFaultProxy(bus === "postgres" ? databases.urlOf("bus", name) : messageBroker.url),
    );
    return new Slot({
      name,
      service: service.name,
      skewMs: 0,
      bus: { kind: bus, url: byName(busProxy.url) },
      database,
      busProxy,
      logFile: join(folder, "logs", `${name}.log`),
      onExit: (exit) => void exits.push(exit),
      env: {
        PATH: process.env.PATH ?? "",
        [`${schemaOf(service.name).toUpperCase()}_DATABASE_URL`]: byName(database.url),
        LOG_LEVEL: "warn",
        TODOKE_API_KEYS: apiKeys,
        ...(planted !== undefined && { CHAOS_PLANTED: planted }),
        ...(isClaimsOnly(copy, planted) && { CHAOS_CLAIMS_ONLY: "true" }),
        ...workerEnv(service.name),
        ...service.env({
          webhookUrl: webhook.url,
          orderBrokerUrl: orderBrokerProxy.url,
          issuer,
          accountUrl,
          gatewayUrl,
          redisUrl: redis?.url,
        }),
      },
    });
  }

  for (const service of services)
    for (let copy = 1; copy <= service.copies; copy++) slots.push(await createSlot(service, copy));
  up.defer(async () => void (await Promise.all(slots.map((slot) => slot.end("kill")))));
  for (const slot of slots) slot.start();
  await Promise.all(slots.map((slot) => slot.up()));

  const rest = up.move();
  return {
    bus,
    services,
    slots,
    postgres,
    messageBroker,
    redis,
    databases,
    busUrl: bus === "postgres" ? databases.urlOf("bus") : messageBroker.url,
    webhook,
    receiver,
    orderBroker,
    orderBrokerProxy,
    gatewayUrl,
    exits,
    isQuiet: () => isQuiet({ databases, services }).catch(() => false),
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

const openIdentityProvider = (gatewayUrl: string) =>
  startIdentityProvider({
    clients: [
      { clientId: "todoke", clientSecret: gatewaySecret, redirectUris: [new URL("/login/callback", gatewayUrl).href] },
    ],
    users: providerUsers,
  });

/**
 * Every second copy works by claims only, as on another bus, so that both ways meet on the same rows. A planted defect is in
 * one of the ways, and all copies take it.
 */
function isClaimsOnly(copy: number, planted: string | undefined): boolean {
  if (planted === undefined) return copy % 2 === 0;
  const name = planted.replace("control:", "");
  return defects.find((defect) => defect.name === name)?.broughtOutBy?.inTransactions !== true;
}

/** With a host name, so that processes resolve names. */
const byName = (url: string): string => url.replace("127.0.0.1", "localhost");

/** Worker settings of a run, as environment variables. */
function workerEnv(service: string): Record<string, string> {
  const name = schemaOf(service).toUpperCase();
  return {
    [`${name}_LEASE_MS`]: String(workerSettings.leaseMs),
    [`${name}_POLL_MS`]: String(workerSettings.pollMs),
    [`${name}_BACKOFF_BASE_MS`]: String(backoff.baseMs),
    [`${name}_BACKOFF_CAP_MS`]: String(backoff.capMs),
  };
}

/** In the order in which work flows, so that nothing can move on to a part that was looked at before. */
async function isQuiet({ databases, services }: Pick<Harness, "databases" | "services">): Promise<boolean> {
  for (const service of services) {
    if ((await countUnfinished(databases, service)) > 0) return false;
    if (!service.consumes) continue;
    if (await hasUnprocessed({ databases, services }, service.name)) return false;
    if ((await countUnfinished(databases, service)) > 0) return false;
  }
  if (!databases.names.includes("bus")) return true;
  const { rows } = await databases.of("bus").query(openDeliveries, [services.map(({ name }) => name)]);
  return rows[0].unfinished === 0;
}

const openDeliveries = `
select count(*)::int as unfinished from todoke_bus.bus_deliveries where status <> 'DONE' and consumer = any($1)`;

const countUnfinished = async (databases: Databases, { name, unfinished }: ServiceUnderTest): Promise<number> =>
  (await databases.of(name).query(unfinished)).rows[0].unfinished;

/** Whether an event that the consumer subscribes to is in an outbox and not processed by it. */
async function hasUnprocessed(
  { databases, services }: Pick<Harness, "databases" | "services">,
  consumer: string,
): Promise<boolean> {
  const subjects = consumers[consumer as keyof typeof consumers];
  const idsIn = async (service: string, rows: string, values: readonly unknown[] = []) =>
    (await databases.of(service).query(`select event_id::text as id from ${rows}`, [...values])).rows.map(
      ({ id }) => id,
    );
  const processed = new Set(await idsIn(consumer, `${schemaOf(consumer)}.processed_events`));
  for (const { name } of services.filter(({ publishes }) => publishes)) {
    const published = await idsIn(name, `${schemaOf(name)}.outbox_events where subject = any($1)`, [subjects]);
    if (published.some((id) => !processed.has(id))) return true;
  }
  return false;
}

/** Resolves when the engine's server has exited. */
export async function waitForExit(engine: Engine): Promise<void> {
  while (engine.pid !== undefined) await sleep(20);
}
