/** A database with the migrated schemas of services, without running services. */
import { readdirSync } from "node:fs";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { type TestDatabase, testDatabase } from "@todoke/kernel/testing";

const http = { name: "http", dir: new URL("../../http/migrations/", import.meta.url) };
const services = new URL("../../../services/", import.meta.url);

const serviceNames = () => readdirSync(services).filter((name) => !name.startsWith("."));

/** The result of `todoke migrate`, without running it for each test. */
export function servicesDatabase(names: readonly string[] = serviceNames()): Promise<TestDatabase> {
  const schemas = names.map((name) => {
    const own = { name, dir: new URL(`${name}/migrations/`, services) };
    return [name.replaceAll("-", "_"), [kernelMigrations, http, own]] as const;
  });
  return testDatabase({ sets: [], schemas: Object.fromEntries(schemas) });
}
