/**
 * `npm run bench`: starts private engines with durable settings, measures, prints, and writes bench/results.json and
 * docs/performance.md. Run it on a machine that does nothing else: a figure taken beside other work is no figure.
 */
import { writeFile } from "node:fs/promises";
import { openNatsBus } from "@todoke/bus-nats";
import { openPostgresBus } from "@todoke/bus-postgres";
import { openRabbitmqBus } from "@todoke/bus-rabbitmq";
import { findEngine, NotFound } from "@todoke/engines";
import { type Db, migrate, openDb } from "@todoke/kernel/db";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { alone, claimAndSettle, gathered, relayTo, type Result } from "./kernel.ts";
import { machine } from "./measure.ts";
import { asMarkdown } from "./report.ts";

const schema = "bench";
const settings = { shared_buffers: "512MB", max_wal_size: "4GB", checkpoint_timeout: "15min" };

await using engines = new AsyncDisposableStack();

async function engine(name: Parameters<typeof findEngine>[0], options = {}) {
  process.stderr.write(`starting ${name} …\n`);
  const found = await findEngine(name, { say: console.error, ...options });
  if (found instanceof NotFound) throw new Error(String(found));
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

const results: Result[] = [];
const take = (result: Result) => {
  results.push(result);
  console.log(asMarkdown([result]));
};

take(await gathered(db, open));
take(await alone(db));
take(await claimAndSettle(db));
{
  await using bus = await openPostgresBus({ url: postgres.url });
  take(await relayTo("postgres", db, bus));
}
const nats = await engine("nats");
{
  await using bus = await openNatsBus({ url: nats.url, name: "bench" });
  take(await relayTo("nats", db, bus));
}
const rabbitmq = await engine("rabbitmq");
{
  await using bus = await openRabbitmqBus({ url: rabbitmq.url, name: "bench" });
  take(await relayTo("rabbitmq", db, bus));
}

const versions = Object.fromEntries([postgres, nats, rabbitmq].map(({ name, version }) => [name, version]));
const about = { date: new Date().toISOString().slice(0, 10), machine: machine(), versions, postgresSettings: settings };
await writeFile(new URL("./results.json", import.meta.url), `${JSON.stringify({ about, results }, null, 2)}\n`);
await writeFile(new URL("../docs/performance.md", import.meta.url), asMarkdown(results, about));
console.log("written: bench/results.json, docs/performance.md");
