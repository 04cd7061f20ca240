/**
 * `npm run bench`: starts private engines with durable settings, measures, prints, and writes bench/results.json and
 * docs/performance.md. Run it on a machine that does nothing else: a figure taken beside other work is no figure.
 */
import { openNatsBus } from "@todoke/bus-nats";
import { openPostgresBus } from "@todoke/bus-postgres";
import { openRabbitmqBus } from "@todoke/bus-rabbitmq";
import { EngineNotFound, findEngine } from "@todoke/engines";
import { type Db, migrate, openDb } from "@todoke/kernel/db";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { clearUp, fillWithOldRows, openDatabase } from "./databases.ts";
import { playersAtTheGateway } from "./gateway.ts";
import { telemetryCost } from "./http.ts";
import { consumeFromJetStream, relayToJetStream } from "./jetstream.ts";
import { alone, claimAndSettle, gathered, relayTo } from "./kernel.ts";
import { matchmaking } from "./matchmaking.ts";
import { machine } from "./measure.ts";
import { acceptedToSent, ordersOverHttp } from "./orders.ts";
import { besidePeers } from "./peers/index.ts";
import { checkOne, grantsOverHttp, grantToSent, type PipelineSetup } from "./pipeline.ts";
import { changesOverHttp } from "./points/changes.ts";
import { dueToGranted } from "./points/delay.ts";
import { drainOfDue } from "./points/drain.ts";
import { asMarkdown, keep, type Result } from "./report.ts";

/**
 * `npm run bench -- gather claims` measures only these, and leaves what is known of the others. `peers` writes a page of
 * its own too (`BENCH_PEERS=drain,open-transaction` makes only these comparisons anew); `peers-quick` is it in small, for
 * trying out, and only runs when it is asked for.
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
const own = { name: "entitlement", dir: new URL("../services/entitlement/migrations/", import.meta.url) };
await migrate(db, { schema, sets: [kernelMigrations, own] });

const engineOf: Record<string, typeof postgres> = { postgres };
const oldRows = Number(process.env.BENCH_OLD_ROWS || 5_000_000);
/** With fewer old rows than the page says there are, nothing is written. */
const isTrial = oldRows < 5_000_000;
let staged: Promise<PipelineSetup> | undefined;

/** Made when the first asks for it, which takes minutes, and the same for all, in order again for each. */
async function stage(): Promise<PipelineSetup> {
  staged ??= (async () => {
    const empty = engines.use(await openDatabase(postgres.url));
    const old = engines.use(await openDatabase(postgres.url));
    await fillWithOldRows(old, oldRows);
    return { empty, old };
  })();
  const { empty, old } = await staged;
  await clearUp(old);
  return { empty, old };
}

type Broker = "nats" | "rabbitmq";

const broker = async (name: Broker) => engineOf[name] ?? newBroker(name);

/** For a measure that is about time: what another has left in its broker would come before what is measured. */
async function newBroker(name: Broker) {
  const started = await engine(name);
  engineOf[name] = started;
  return started;
}

for (const [name, measure] of Object.entries(measures())) {
  if (only.length > 0 && !only.includes(name)) continue;
  const measured = [await measure()].flat();
  console.log(measured.map((result) => asMarkdown(result)).join("\n"));
  if (!isTrial && name !== "peers-quick") await record(name, measured);
}

function measures(): Record<string, () => Promise<Result | Result[]>> {
  return {
    grants: async () => grantsOverHttp(await stage()),
    check: async () => checkOne(await stage()),
    "relay-jetstream": async () => relayToJetStream((await broker("nats")).url, await stage()),
    consume: async () => consumeFromJetStream((await broker("nats")).url, await stage()),
    "sent-postgres": async () => grantToSent({ name: "postgres", url: ({ url }) => url }, await stage()),
    "sent-nats": async () => {
      const { url } = await newBroker("nats");
      return await grantToSent({ name: "nats", url: () => url }, await stage());
    },
    "sent-rabbitmq": async () => {
      const { url } = await newBroker("rabbitmq");
      return await grantToSent({ name: "rabbitmq", url: () => url }, await stage());
    },
    gateway: () => playersAtTheGateway(postgres.url),
    matchmaking: async () => {
      engineOf.redis ??= await engine("redis");
      return await matchmaking({ postgresUrl: postgres.url, redisUrl: engineOf.redis.url });
    },
    points: () => changesOverHttp(postgres.url),
    "points-drain": () => drainOfDue(postgres.url),
    "points-delay": async () => {
      const [nats, rabbitmq] = [await newBroker("nats"), await newBroker("rabbitmq")];
      return await dueToGranted(postgres.url, [
        { name: "postgres", url: (databaseUrl) => databaseUrl },
        { name: "nats", url: () => nats.url },
        { name: "rabbitmq", url: () => rabbitmq.url },
      ]);
    },
    orders: () => ordersOverHttp(postgres.url),
    "orders-sent": () => acceptedToSent(postgres.url),
    gather: () => gathered(db, open),
    alone: () => alone(db),
    claims: () => claimAndSettle(db),
    telemetry: () => telemetryCost(postgres.url),
    "relay-postgres": async () => {
      await using bus = await openPostgresBus({ url: postgres.url });
      return await relayTo("postgres", db, bus);
    },
    "relay-nats": async () => {
      const nats = await broker("nats");
      await using bus = await openNatsBus({ url: nats.url, name: "bench" });
      return await relayTo("nats", db, bus);
    },
    "relay-rabbitmq": async () => {
      const rabbitmq = await broker("rabbitmq");
      await using bus = await openRabbitmqBus({ url: rabbitmq.url, name: "bench" });
      return await relayTo("rabbitmq", db, bus);
    },
    peers: () => peers("full"),
    ...(only.includes("peers-quick") && { "peers-quick": () => peers("quick") }),
  };
}

async function peers(size: "full" | "quick"): Promise<Result> {
  const redis = await engine("redis", { settings: { appendfsync: "always" } });
  const versions = { PostgreSQL: postgres.version, Redis: redis.version };
  const only = (process.env.BENCH_PEERS ?? "").split(",").filter(Boolean);
  return await besidePeers({ postgresUrl: postgres.url, redisUrl: redis.url, size, versions, only });
}

async function record(name: string, results: readonly Result[]): Promise<void> {
  const versions = Object.fromEntries(Object.values(engineOf).map(({ name, version }) => [name, version]));
  const about = { machine: machine(), versions, postgresSettings: settings };
  await keep({ about, name, results, order: Object.keys(measures()) });
  console.log("written: bench/results.json, docs/performance.md");
}
