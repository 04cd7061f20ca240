/**
 * `npm run bench`: starts private engines with durable settings, runs the benchmarks, and writes bench/results.json and
 * docs/performance.md. Run it on an idle machine.
 */
import { openNatsBus } from "@todoke/bus-nats";
import { openPostgresBus } from "@todoke/bus-postgres";
import { openRabbitmqBus } from "@todoke/bus-rabbitmq";
import { EngineNotFound, findEngine } from "@todoke/engines";
import { type Db, migrate, openDb } from "@todoke/kernel/db";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { grantsBesideBacklog } from "./backlog.ts";
import { costPerCommand } from "./costs.ts";
import { fillWithOldRows, finishAndVacuum, openDatabase } from "./databases.ts";
import { gatewayReads } from "./gateway.ts";
import { idleStart } from "./idle.ts";
import { consumeFromJetStream, relayToJetStream } from "./jetstream.ts";
import { batchedGrants, batchLatency, claimAndSettle, relayTo } from "./kernel.ts";
import { matchmaking } from "./matchmaking.ts";
import { machine } from "./measure.ts";
import { acceptedToTaken, ordersOverHttp } from "./orders.ts";
import { comparePeers } from "./peers/index.ts";
import { checkOne, grantsOverHttp, grantToSent, type PipelineSetup } from "./pipeline.ts";
import { changesOverHttp } from "./points/changes.ts";
import { dueToGranted } from "./points/delay.ts";
import { drainDueReservations } from "./points/drain.ts";
import { type Result, renderResult, saveResults } from "./report.ts";
import { type RoadBus, wholeRoad } from "./road.ts";
import { telemetryCost } from "./telemetry.ts";

/**
 * `npm run bench -- batch claims` runs only these and keeps the results of the others. `peers` also writes a page of its own
 * (`BENCH_PEERS=drain,open-transaction` repeats only these comparisons). `BENCH_ROAD=postgres,nats` limits `road` to these buses.
 * `peers-quick`, `road-quick` and `gateway-quick` are short trials that run only by name and write nothing.
 */
const only = process.argv.slice(2);
const schema = "bench";
const settings = { shared_buffers: "512MB", max_wal_size: "4GB", checkpoint_timeout: "15min" };

await using engines = new AsyncDisposableStack();

async function engine(name: Parameters<typeof findEngine>[0], options = {}) {
  process.stderr.write(`starting ${name} …\n`);
  const found = await findEngine(name, { onInstall: console.error, ...options });
  if (found instanceof EngineNotFound) throw new Error(found.message);
  return engines.use(found);
}

const postgres = await engine("postgres", { settings });
const pools: Db[] = [];
const open = (poolMax: number) => {
  const pool = openDb({ url: postgres.url, schema, poolMax, statementTimeoutMs: 120_000 });
  pools.push(pool);
  return pool;
};
engines.defer(async () => void (await Promise.all(pools.map((pool) => pool.end()))));
const db = open(8);
const entitlementMigrations = {
  name: "entitlement",
  dir: new URL("../services/entitlement/migrations/", import.meta.url),
};
await migrate(db, { schema, sets: [kernelMigrations, entitlementMigrations] });

const startedEngines: Record<string, typeof postgres> = { postgres };
const oldRows = Number(process.env.BENCH_OLD_ROWS || 5_000_000);
/** A run with fewer old rows than the page states writes nothing. */
const isTrial = oldRows < 5_000_000;
let setup: Promise<PipelineSetup> | undefined;

/** Created once, which takes minutes, and vacuumed before each benchmark that uses it. */
async function pipelineSetup(): Promise<PipelineSetup> {
  setup ??= (async () => {
    const empty = engines.use(await openDatabase(postgres.url));
    const old = engines.use(await openDatabase(postgres.url));
    await fillWithOldRows(old, oldRows);
    return { empty, old };
  })();
  const { empty, old } = await setup;
  await finishAndVacuum(old);
  return { empty, old };
}

type MessageBroker = "nats" | "rabbitmq";

const messageBroker = async (name: MessageBroker) => startedEngines[name] ?? startMessageBroker(name);

/** For latencies: messages that an earlier benchmark left would be delivered first. */
async function startMessageBroker(name: MessageBroker) {
  const started = await engine(name);
  startedEngines[name] = started;
  return started;
}

for (const [name, benchmark] of Object.entries(benchmarks())) {
  if (only.length > 0 && !only.includes(name)) continue;
  const results = [await benchmark()].flat();
  console.log(results.map((result) => renderResult(result)).join("\n"));
  if (!isTrial && !name.endsWith("-quick")) await save(name, results);
}

function benchmarks(): Record<string, () => Promise<Result | Result[]>> {
  return {
    road: async () =>
      wholeRoad({ postgresUrl: postgres.url, buses: await roadBuses(["postgres", "nats", "rabbitmq"]) }),
    ...(only.includes("road-quick") && {
      "road-quick": async () =>
        wholeRoad({ postgresUrl: postgres.url, buses: await roadBuses(["postgres"]), quick: true }),
    }),
    grants: async () => grantsOverHttp(await pipelineSetup()),
    check: async () => checkOne(await pipelineSetup()),
    "relay-jetstream": async () => relayToJetStream((await messageBroker("nats")).url, await pipelineSetup()),
    consume: async () => consumeFromJetStream((await messageBroker("nats")).url, await pipelineSetup()),
    "sent-postgres": async () => grantToSent({ name: "postgres", url: ({ url }) => url }, await pipelineSetup()),
    "sent-nats": async () => {
      const { url } = await startMessageBroker("nats");
      return await grantToSent({ name: "nats", url: () => url }, await pipelineSetup());
    },
    "sent-rabbitmq": async () => {
      const { url } = await startMessageBroker("rabbitmq");
      return await grantToSent({ name: "rabbitmq", url: () => url }, await pipelineSetup());
    },
    gateway: () => gatewayReads(postgres.url),
    ...(only.includes("gateway-quick") && {
      "gateway-quick": () => gatewayReads(postgres.url, { quick: true }),
    }),
    matchmaking: async () => {
      startedEngines.redis ??= await engine("redis");
      return await matchmaking({ postgresUrl: postgres.url, redisUrl: startedEngines.redis.url });
    },
    costs: () => costPerCommand(postgres.url),
    idle: () => idleStart(),
    backlog: () => grantsBesideBacklog(postgres.url),
    points: () => changesOverHttp(postgres.url),
    "points-drain": () => drainDueReservations(postgres.url),
    "points-delay": async () => {
      const [nats, rabbitmq] = [await startMessageBroker("nats"), await startMessageBroker("rabbitmq")];
      return await dueToGranted(postgres.url, [
        { name: "postgres", url: (databaseUrl) => databaseUrl },
        { name: "nats", url: () => nats.url },
        { name: "rabbitmq", url: () => rabbitmq.url },
      ]);
    },
    orders: () => ordersOverHttp(postgres.url),
    "orders-taken": () => acceptedToTaken(postgres.url),
    batch: () => batchedGrants(db, open),
    "batch-latency": () => batchLatency(db),
    claims: () => claimAndSettle(db),
    telemetry: () => telemetryCost(postgres.url),
    "relay-postgres": async () => {
      await using bus = await openPostgresBus({ url: postgres.url });
      return await relayTo("postgres", db, bus);
    },
    "relay-nats": async () => {
      const nats = await messageBroker("nats");
      await using bus = await openNatsBus({ url: nats.url, name: "bench" });
      return await relayTo("nats", db, bus);
    },
    "relay-rabbitmq": async () => {
      const rabbitmq = await messageBroker("rabbitmq");
      await using bus = await openRabbitmqBus({ url: rabbitmq.url, name: "bench" });
      return await relayTo("rabbitmq", db, bus);
    },
    peers: () => peers("full"),
    ...(only.includes("peers-quick") && { "peers-quick": () => peers("quick") }),
  };
}

async function roadBuses(defaults: readonly RoadBus["name"][]): Promise<RoadBus[]> {
  const names = (process.env.BENCH_ROAD ?? "").split(",").filter(Boolean) as RoadBus["name"][];
  const buses: RoadBus[] = [];
  for (const name of names.length > 0 ? names : defaults)
    buses.push(name === "postgres" ? { name } : { name, url: (await startMessageBroker(name)).url });
  return buses;
}

async function peers(size: "full" | "quick"): Promise<Result> {
  const redis = await engine("redis", { settings: { appendfsync: "always" } });
  const versions = { PostgreSQL: postgres.version, Redis: redis.version };
  const only = (process.env.BENCH_PEERS ?? "").split(",").filter(Boolean);
  return await comparePeers({ postgresUrl: postgres.url, redisUrl: redis.url, size, versions, only });
}

async function save(name: string, results: readonly Result[]): Promise<void> {
  const versions = Object.fromEntries(Object.values(startedEngines).map(({ name, version }) => [name, version]));
  const environment = { machine: machine(), versions, postgresSettings: settings };
  await saveResults({ environment, name, results, order: Object.keys(benchmarks()) });
  console.log("written: bench/results.json, docs/performance.md");
}
