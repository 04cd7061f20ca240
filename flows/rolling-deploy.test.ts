/** A rolling deploy from the last release to this build: docs/guides/rolling-deploys.md. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Db, openDb } from "@todoke/kernel/db";
import { freePort, testDatabase, until } from "@todoke/kernel/testing";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, test } from "vitest";
import { settingsFor } from "./all-services.ts";
import { unpackReleased } from "./released.ts";
import { createServiceLoad } from "./service-load.ts";
import { todoke } from "./service-process.ts";

const names = ["account", "entitlement", "notification", "matchmaking", "points", "orders", "gateway-bff"] as const;
const envName = (name: string, suffix: string) => `${name.toUpperCase().replaceAll("-", "_")}_${suffix}`;
const schemas = names.map((name) => name.replaceAll("-", "_"));

type Env = Record<string, string>;
const run = (program: string, args: readonly string[], env: Env) =>
  promisify(execFile)(process.execPath, [program, ...args], { env: { PATH: process.env.PATH, ...env } });

/** One process of a build with all services. */
async function serveAll(program: string, settings: Env) {
  const ports = await Promise.all(names.map(async (name) => [name, await freePort()] as const));
  const urls = Object.fromEntries(ports.map(([name, port]) => [name, `http://127.0.0.1:${port}`]));
  const env = {
    PATH: process.env.PATH,
    ...settings,
    ...Object.fromEntries(ports.map(([name, port]) => [envName(name, "PORT"), String(port)])),
    ...Object.fromEntries(names.map((name) => [envName(name, "URL"), urls[name]])),
  };
  const child = spawn(process.execPath, [program, "serve", ...names], { env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
  const exited = once(child, "exit").then(([code]) => code as number | null);
  const isReady = async () => {
    if (child.exitCode !== null) throw new Error(`it did not start:\n${output}`);
    const responses = await Promise.all(names.map((name) => fetch(`${urls[name]}/readyz`).catch(() => undefined)));
    return responses.every((response) => response?.ok);
  };
  const [account = "", entitlement = "", , , points = "", orders = "", gateway = ""] = names.map((name) => urls[name]);
  await until("all services are ready", isReady, { withinMs: 150_000 });
  return {
    urls: { account, entitlement, points, orders, gateway },
    /** SIGTERM; the exit code. */
    async stop() {
      child.kill("SIGTERM");
      return exited;
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

/** Tables, columns, constraints, indexes, functions and triggers of all services, as text. */
async function describeSchemas(db: Db): Promise<string[]> {
  const { rows } = await db.query(
    `select line from (
       select format('%I.%I.%I %s %s %s', table_schema, table_name, column_name, data_type, is_nullable, column_default) as line
         from information_schema.columns where table_schema = any($1)
       union all
       select format('%s %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
         from pg_constraint where connamespace::regnamespace::text = any($1)
       union all
       select indexdef from pg_indexes where schemaname = any($1)
       union all
       select pg_get_functiondef(oid) from pg_proc where pronamespace::regnamespace::text = any($1)
       union all
       select pg_get_triggerdef(oid) from pg_trigger
        where not tgisinternal and tgrelid in (select oid from pg_class where relnamespace::regnamespace::text = any($1))
     ) as described order by line`,
    [schemas],
  );
  return rows.map(({ line }) => line);
}

/** Rows that are not finished yet: events, messages to consumers, notifications and orders. */
async function unfinished(db: Db): Promise<string[]> {
  const counts = [
    ...["account", "entitlement", "matchmaking", "points", "orders"].map(
      (schema) =>
        `select '${schema} events' as what, count(*) from ${schema}.outbox_events where status <> 'PUBLISHED'`,
    ),
    ...["gateway_bff", "matchmaking", "notification", "points"].map(
      (schema) => `select '${schema} dead letters', count(*) from ${schema}.inbox_dlq`,
    ),
    `select 'deliveries', count(*) from todoke_bus.bus_deliveries where status <> 'DONE'`,
    `select 'notifications', count(*) from notification.notifications where status <> 'SENT'`,
    `select 'reservations', count(*) from points.point_reservations where status <> 'DONE'`,
    `select 'orders', count(*) from orders.outbox_orders where status <> 'succeeded'`,
  ];
  const { rows } = await db.query(counts.join(" union all "));
  return rows.filter(({ count }) => Number(count) > 0).map(({ what, count }) => `${count} ${what}`);
}

test("the last release serves while this build migrates its database, and beside this build until it is stopped", async () => {
  using released = unpackReleased();
  const former = join(released.packages, "cli/todoke.js");
  await using t = await testDatabase({ sets: [] });
  const settings = Object.fromEntries(Object.entries(settingsFor(t.url)).filter(([name]) => !name.endsWith("_PORT")));
  await run(former, ["migrate"], settings);
  await using before = await serveAll(former, settings);
  await using db = Object.assign(openDb({ url: t.url, schema: "public" }), {
    async [Symbol.asyncDispose]() {
      await db.end();
    },
  });
  const loadBefore = await createServiceLoad(before.urls, db);
  await loadBefore();

  await Promise.all([run(todoke, ["migrate"], settings), loadBefore()]);
  await loadBefore();
  await using after = await serveAll(todoke, settings);
  const loadAfter = await createServiceLoad(after.urls, db);
  await Promise.all([loadBefore(), loadAfter()]);
  expect(await before.stop()).toBe(0);
  await loadAfter();

  await until("everything has ended well", async () => (await unfinished(db)).length === 0, { withinMs: 120_000 });
  await run(todoke, ["audit", "points"], settings);
  await using fresh = await servicesDatabase();
  expect(await describeSchemas(db)).toEqual(await describeSchemas(fresh.db));
});
