/** Logins, in Chromium too, with a Keycloak that has the realm of deploy/keycloak. */
import { freePort } from "@todoke/kernel/testing";
import { findEngines } from "../test/engines.ts";
import type { Result } from "../test/result.ts";
import { fetchTools } from "../test/tools.ts";
import { runTests } from "../test/vitest.ts";
import { startControl } from "./keycloak/control.ts";
import { fetchKeycloak } from "./keycloak/distribution.ts";
import { Keycloak } from "./keycloak/server.ts";
import { report } from "./peer.ts";

const files = [
  "services/gateway-bff/oidc/issuer.test.ts",
  "flows/provider-in-a-browser.test.ts",
  "flows/players-in-a-browser.test.ts",
];

/** The user `admin` of the realm. */
const adminSubject = "5c1f6a52-0000-4000-8000-000000000003";

export async function keycloak(signal: AbortSignal): Promise<Result> {
  const home = await fetchKeycloak(signal);
  await fetchTools(signal); // Chromium.
  await using engines = findEngines(signal, ["postgres"]);
  await engines.find();
  const origin = `http://localhost:${await freePort()}`;
  await using server = new Keycloak({ home, port: await freePort(), origin });
  await server.prepare();
  await server.start();
  report(`Keycloak is ready at ${server.issuer}, with the realm imported`);
  await using control = await startControl({
    stop: () => server.stop(),
    start: () => server.start(),
    "rotate-keys": () => server.rotateKeys(),
  });
  const env = {
    ...engines.urls(),
    TEST_OIDC_ISSUER: server.issuer,
    TEST_OIDC_CLIENT_ID: "todoke",
    TEST_OIDC_CLIENT_SECRET: server.clientSecret,
    TEST_OIDC_ORIGIN: origin,
    TEST_OIDC_ADMIN: adminSubject,
    TEST_OIDC_CONTROL_URL: control.url,
  };
  // One file at a time: they share the gateway's address, and one of them stops Keycloak.
  return await runTests({ args: ["--fileParallelism=false", ...files], env, signal });
}
