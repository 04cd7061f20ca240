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
import { telemetryCost } from "./http.ts";
import { alone, claimAndSettle, gathered, type Result, relayTo } from "./kernel.ts";
import { machine } from "./measure.ts";
import { asMarkdown } from "./report.ts";

/** `npm run bench -- gather claims` measures only these, and writes nothing. */
const only = process.argv.slice(2);
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

const engineOf = { postgres };
const results: Result[] = [];
for (const [name, measure] of Object.entries(measures())) {
  if (only.length > 0 && !only.includes(name)) continue;
  const result = await measure();
  results.push(result);
  console.log(asMarkdown([result]));
}

function measures(): Record<string, () => Promise<Result>> {
  return {
    gather: () => gathered(db, open),
    alone: () => alone(db),
    claims: () => claimAndSettle(db),
    telemetry: () => telemetryCost(postgres.url),
    "relay-postgres": async () => {
      await using bus = await openPostgresBus({ url: postgres.url });
      return await relayTo("postgres", db, bus);
    },
    "relay-nats": async () => {
      const nats = await engine("nats");
      Object.assign(engineOf, { nats });
      await using bus = await openNatsBus({ url: nats.url, name: "bench" });
      return await relayTo("nats", db, bus);
    },
    "relay-rabbitmq": async () => {
      const rabbitmq = await engine("rabbitmq");
      Object.assign(engineOf, { rabbitmq });
      await using bus = await openRabbitmqBus({ url: rabbitmq.url, name: "bench" });
      return await relayTo("rabbitmq", db, bus);
    },
  };
}

if (only.length === 0) await write(results);

async function write(results: readonly Result[]): Promise<void> {
  const versions = Object.fromEntries(Object.values(engineOf).map(({ name, version }) => [name, version]));
  const about = {
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    versions,
    postgresSettings: settings,
  };
  await writeFile(new URL("./results.json", import.meta.url), `${JSON.stringify({ about, results }, null, 2)}\n`);
  await writeFile(new URL("../docs/performance.md", import.meta.url), asMarkdown(results, about));
  console.log("written: bench/results.json, docs/performance.md");
}
