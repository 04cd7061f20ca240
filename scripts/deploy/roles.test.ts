/** The role files of deploy/postgres against the tables that the migrations create. */
import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createKey, revokeKeys } from "@todoke/http";
import { type Db, type Tx, transaction } from "@todoke/kernel/db";
import { servicesDatabase } from "@todoke/service/testing";
import { afterAll, beforeAll, expect, test } from "vitest";

const root = new URL("../../", import.meta.url);
const services = ["account", "entitlement", "gateway-bff", "matchmaking", "notification", "orders", "points"];
const schemaOf = (service: string) => service.replaceAll("-", "_");

/** Roles are shared by the whole server, so this file has its own. */
const suffix = randomBytes(6).toString("hex");
const roleOf = (service: string) => `todoke_${schemaOf(service)}_${suffix}`;

let t: Awaited<ReturnType<typeof servicesDatabase>>;
beforeAll(async () => {
  t = await servicesDatabase();
  for (const service of services) {
    const sql = readFileSync(new URL(`deploy/postgres/${service}-role.sql`, root), "utf8");
    await t.db.query(`create role ${roleOf(service)}`);
    // Twice: it can be run again.
    for (const _ of [1, 2]) await t.db.query(sql.replaceAll(`todoke_${schemaOf(service)}`, roleOf(service)));
  }
});
afterAll(async () => {
  for (const role of services.map(roleOf)) await t.db.query(`drop owned by ${role}; drop role ${role}`);
  await t[Symbol.asyncDispose]();
});

/** The tables of a service that its role can only read. */
async function readOnlyTables(db: Db, service: string): Promise<string[]> {
  const { rows } = await db.query(
    `select relname::text as name from pg_class
      where relnamespace = $1::regnamespace and relkind in ('r', 'p') and not relispartition
        and not has_table_privilege($2, oid, 'insert, update, delete') and not has_any_column_privilege($2, oid, 'update')
      order by 1`,
    [schemaOf(service), roleOf(service)],
  );
  return rows.map(({ name }) => name);
}

test.each(services)(
  "%s can write every table that it uses: a new table needs a line in its role file",
  async (service) => {
    const { events } = await import(`@todoke/${service}`);
    const unused = [
      ...(events.emits.length > 0 ? [] : ["outbox_events"]),
      ...(events.consumes.length > 0 ? [] : ["inbox_attempts", "inbox_dlq", "processed_events"]),
      "schema_migrations",
    ];
    expect(await readOnlyTables(t.db, service)).toEqual(unused.sort());
  },
);

/** The tables of a service itself that retention deletes from. */
const removedByAge: Readonly<Record<string, readonly string[]>> = {
  "gateway-bff": ["rate_limits"],
  matchmaking: ["matches", "ticket_ends", "damaged_tickets"],
  notification: ["notifications", "notification_dlq"],
  orders: ["outbox_orders", "idempo_ledger"],
};

test.each(services)("%s can run its retention: delete rows, and lock them first", async (service) => {
  const { events } = await import(`@todoke/${service}`);
  const tables = [
    "idempotency_keys",
    "dead_letter_batches",
    "console_samples",
    ...(events.emits.length > 0 ? ["outbox_events"] : []),
    ...(events.consumes.length > 0 ? ["inbox_attempts", "inbox_dlq", "processed_events"] : []),
    ...(removedByAge[service] ?? []),
  ];
  const db = t.open({ schema: schemaOf(service), poolMax: 1 });
  await db.query(`set role ${roleOf(service)}`);
  for (const table of tables) {
    const sql = `delete from ${table} where ctid = any(array(select ctid from ${table} limit 1 for update skip locked))`;
    await expect(db.query(sql), sql).resolves.toMatchObject({ rowCount: 0 });
  }
});

test("in a shared database, a role can use its own schema only, and create nothing anywhere", async () => {
  const { rows } = await t.db.query(
    `select r.rolname::text as role, n.nspname::text as schema,
            has_schema_privilege(r.oid, n.oid, 'usage') as usage, has_schema_privilege(r.oid, n.oid, 'create') as create
       from pg_roles r cross join pg_namespace n
      where r.rolname = any($1) and (n.nspname = any($2) or n.nspname = 'public')`,
    [services.map(roleOf), services.map(schemaOf)],
  );
  expect(rows).toHaveLength(services.length * (services.length + 1));
  expect(rows.filter((row) => row.create)).toEqual([]);
  const used = rows.filter((row) => row.usage && row.schema !== "public").map(({ role, schema }) => [role, schema]);
  expect(used.sort()).toEqual(services.map((service) => [roleOf(service), schemaOf(service)]).sort());
});

test("databases.sql creates a database for every service", () => {
  const sql = readFileSync(new URL("deploy/postgres/databases.sql", root), "utf8");
  const created = [...sql.matchAll(/^create database (\w+) owner (\w+);$/gm)].map(([, name, owner]) => [name, owner]);
  expect(created).toEqual(services.map(schemaOf).map((name) => [`todoke_${name}`, `todoke_${name}_owner`]));
});

test.each(services)("%s creates and revokes API keys, and changes nothing else of them", async (service) => {
  const id = randomUUID();
  const as = <T>(work: (tx: Tx) => Promise<T>) =>
    transaction(t.db, async (tx) => {
      await tx.query(`set local role ${roleOf(service)}; set local search_path = ${schemaOf(service)}`);
      return work(tx);
    });
  const key = {
    keyId: id,
    holder: "shop",
    scopes: ["read"],
    sha256: id.replaceAll("-", "").repeat(2),
    createdBy: "user:a",
  } as const;
  expect(await as((tx) => createKey(tx, key))).toBe(true);
  expect(await as((tx) => createKey(tx, key))).toBe(true);
  for (const change of ["scopes = '{points:write}'", "holder = 'other'", "expires_at = null", "sha256 = sha256('x')"])
    await expect(as((tx) => tx.query(`update api_keys set ${change}`))).rejects.toThrow("permission denied");
  expect(await as((tx) => revokeKeys(tx, { keyId: id }, { by: "user:a" }))).toEqual([id]);
});
