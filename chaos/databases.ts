/**
 * Creates a database for every service of a run, with the roles and rights of deploy/postgres, and one for the bus if it is in
 * PostgreSQL. The owners migrate; processes have roles of their own, which inherit the rights of their service's runtime role.
 * The checker reads as a superuser.
 */
import { readFileSync } from "node:fs";
import { migratePostgresBus } from "@todoke/bus-postgres";
import { type Db, openDb } from "@todoke/kernel/db";
import { apiKeys } from "./callers.ts";
import { watchedTables } from "./checks/claims.ts";
import type { ServiceUnderTest } from "./services/index.ts";
import type { BusKind } from "./settings.ts";
import { prepareWatch, watch } from "./watch.ts";

export interface Databases extends AsyncDisposable {
  /** Connections to the server, as a superuser. */
  readonly server: Db;
  /** Connections to the database of a service, or "bus", as a superuser and without a proxy. */
  of(name: string): Db;
  /** All of them, by name. */
  readonly names: readonly string[];
  /** Creates the role of a process. */
  createRole(role: string, service: string): Promise<void>;
  /** The database of a service, or "bus": as that role, or as a superuser. */
  urlOf(name: string, role?: string): string;
}

/** Of its schema, and with "todoke_" before it of its database and role: "gateway_bff". */
export const schemaOf = (service: string): string => service.replaceAll("-", "_");

export interface DatabasesOptions {
  readonly bus: BusKind;
  readonly services: readonly ServiceUnderTest[];
  /** Duration of the load. */
  readonly forMs: number;
}

const password = "chaos";

const readSql = (file: string) => readFileSync(new URL(`../deploy/postgres/${file}`, import.meta.url), "utf8");

/** The statements that create the database and the roles of one service. */
const creation = (file: string, name: string): readonly string[] =>
  readSql(file)
    .split(/;$/m)
    .filter((statement) => new RegExp(`\\btodoke_${schemaOf(name)}(_owner)?\\b`).test(statement));

export async function createDatabases(serverUrl: string, options: DatabasesOptions): Promise<Databases> {
  const { bus, services } = options;
  await using pools = new AsyncDisposableStack();
  const names = [...services.map(({ name }) => name), ...(bus === "postgres" ? ["bus"] : [])];
  const urlOf = (name: string, role?: string) => {
    const url = new URL(`/todoke_${schemaOf(name)}`, serverUrl);
    return (role === undefined ? url : Object.assign(url, { username: role, password })).href;
  };
  const open = (url: string): Db => {
    const db = openDb({ url, poolMax: 4, statementTimeoutMs: 120_000, schema: "public" });
    pools.defer(() => db.end());
    return db;
  };
  const server = open(serverUrl);
  for (const name of names) {
    for (const statement of creation(name === "bus" ? "bus-database.sql" : "databases.sql", name))
      await server.query(statement);
    await server.query(`alter role todoke_${schemaOf(name)}_owner password '${password}'`);
  }
  const all = new Map(names.map((name) => [name, open(urlOf(name))]));
  const databases = { server, names, urlOf, of: (name: string) => all.get(name) as Db };
  for (const name of names) await prepare(databases, name, options);
  const opened = pools.move();
  return {
    ...databases,
    async createRole(role, service) {
      const rights = [`todoke_${schemaOf(service)}`, ...(bus === "postgres" ? ["todoke_bus"] : [])];
      await server.query(`create role "${role}" login password '${password}' in role ${rights.join()}`);
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Migrates as the owner, grants the rights of the runtime role, and watches the claimed tables. */
async function prepare(
  { of, urlOf }: Pick<Databases, "of" | "urlOf">,
  name: string,
  { services, forMs }: DatabasesOptions,
): Promise<void> {
  const service = services.find((each) => each.name === name);
  const ownerUrl = urlOf(name, `todoke_${schemaOf(name)}_owner`);
  await (service ? migrateService(service, ownerUrl) : migratePostgresBus(ownerUrl, { dryRun: false }));
  const owner = openDb({ url: ownerUrl, poolMax: 1 });
  await owner.query(readSql(`${name}-role.sql`)).finally(() => owner.end());
  await prepareWatch(of(name));
  const [schema, tables] =
    name === "bus"
      ? ["todoke_bus", watchedTables.filter(({ table }) => table === "bus_deliveries")]
      : [schemaOf(name), service?.tables ?? []];
  for (const table of tables) await watch(of(name), schema, table);
  if (service?.prepare) await of(name).query(service.prepare(forMs));
}

async function migrateService(service: ServiceUnderTest, url: string): Promise<void> {
  const nowhere = "http://127.0.0.1:1/";
  const own = service.env({
    webhookUrl: nowhere,
    orderBrokerUrl: nowhere,
    issuer: nowhere,
    accountUrl: nowhere,
    gatewayUrl: nowhere,
  });
  await (await service.load()).migrate({ DATABASE_URL: url, TODOKE_API_KEYS: apiKeys, ...own }, { dryRun: false });
}
