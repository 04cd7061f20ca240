/** All services under a small load, for tools that look at their metrics (`npm run interop -- prometheus`). */
import { startAll } from "./all-services.ts";
import { createServiceLoad } from "./service-load.ts";

export async function startMonitored() {
  const all = await startAll();
  const urlOf = (wanted: string) => all.running.find(({ name }) => name === wanted)?.url ?? "";
  const urls = {
    account: urlOf("account"),
    entitlement: urlOf("entitlement"),
    points: urlOf("points"),
    orders: urlOf("orders"),
    gateway: urlOf("gateway-bff"),
  };
  return {
    opsUrls: all.running.map(({ opsUrl }) => opsUrl),
    makeLoad: await createServiceLoad(urls, all.db),
    [Symbol.asyncDispose]: () => all[Symbol.asyncDispose](),
  };
}
