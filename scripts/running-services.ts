/** All services in this process on a PostgreSQL that is found or started, for scripts that record what they return. */
import { EngineNotFound, findEngine } from "@todoke/engines";
import type { ApiDocument } from "../flows/api-faults.ts";

export async function startServices() {
  await using parts = new AsyncDisposableStack();
  const engine = await findEngine("postgres", { settings: { fsync: "off" } });
  if (engine instanceof EngineNotFound) throw new Error(engine.message);
  parts.use(engine);
  process.env.TEST_POSTGRES_URL = engine.url;
  const { readDocuments, startAll } = await import("../flows/all-services.ts");
  const services = parts.use(await startAll({ settings: { TODOKE_DEV: "true" } }));
  const documents: Readonly<Record<string, ApiDocument>> = await readDocuments(services);
  const all = parts.move();
  return { services, documents, [Symbol.asyncDispose]: () => all.disposeAsync() };
}
