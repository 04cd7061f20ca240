/** A database with the migrated schemas of services, without running services. */
import { kernelMigrations } from "@todoke/kernel/migrations";
import { type TestDatabase, testDatabase } from "@todoke/kernel/testing";
import { services } from "../services.ts";

const repository = new URL("../../../", import.meta.url);
const http = { name: "http", dir: new URL("packages/http/migrations/", repository) };

/** The result of `todoke migrate`, without running it for each test. */
export function servicesDatabase(names = services.map(({ name }) => name)): Promise<TestDatabase> {
  const schemas = names.map((name) => {
    const own = { name, dir: new URL(`services/${name}/migrations/`, repository) };
    return [name.replaceAll("-", "_"), [kernelMigrations, http, own]] as const;
  });
  return testDatabase({ sets: [], schemas: Object.fromEntries(schemas) });
}
