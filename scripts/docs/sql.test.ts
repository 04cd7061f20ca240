import { readFileSync } from "node:fs";
import { migrate } from "@todoke/kernel/db";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { testDatabase } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { blocksOf } from "./markdown.ts";

const root = new URL("../../", import.meta.url);
const statementsOf = (page: string) => blocksOf(readFileSync(new URL(page, root), "utf8"), "sql");

/** The schemas of the services, with the kernel's tables, and of the PostgreSQL bus. */
async function setup() {
  const setOf = (name: string) => ({ name, dir: new URL(`services/${name}/migrations/`, root) });
  const bus = { name: "bus-postgres", dir: new URL("packages/bus-postgres/migrations/", root) };
  const t = await testDatabase({ schema: "entitlement", sets: [kernelMigrations, setOf("entitlement")] });
  for (const schema of ["account", "notification", "matchmaking", "points", "orders"])
    await migrate(t.db, { schema, sets: [kernelMigrations, setOf(schema)] });
  await migrate(t.db, { schema: "todoke_bus", sets: [bus] });
  return t;
}

const pages = ["docs/runbook.md", "docs/failure-modes.md", "docs/slo.md", "docs/buses.md"];

test.each(pages)("every SQL block of %s runs", async (page) => {
  await using t = await setup();
  const statements = statementsOf(page);
  expect(statements.length).toBeGreaterThan(1);
  for (const statement of statements) await expect(t.db.query(statement), statement).resolves.toBeDefined();
});
