/**
 * A program for tools that make requests from OpenAPI documents (`npm run interop -- schemathesis`). It runs every service, each
 * behind a proxy that replaces `Authorization: Bearer placeholder` by the credential of a caller who may use the route, and prints
 * one line of JSON. It ends when its standard input does.
 */
import { startIdentityProvider } from "@todoke/identity";
import { startAll } from "./all-services.ts";
import { createCallers } from "./api-target/callers.ts";
import { startProxy } from "./api-target/proxy.ts";

await using parts = new AsyncDisposableStack();
const client = {
  clientId: "todoke",
  clientSecret: "s".repeat(32),
  redirectUris: ["http://localhost:8080/login/callback"],
};
const provider = parts.use(await startIdentityProvider({ clients: [client], users: [] }));
const settings = { OIDC_ISSUER: provider.issuer, OIDC_CLIENT_SECRET: client.clientSecret };
const services = parts.use(await startAll({ settings }));
const targets = [];
for (const { name, url } of services.running) {
  const { authorize, userIds } = await createCallers(name, services);
  targets.push({ name, url: parts.use(await startProxy(url, authorize)).url, userIds });
}
console.log(JSON.stringify(targets));
process.stdin.resume();
await new Promise((resolve) => process.stdin.once("end", resolve));
