/**
 * Another provider for the tests of logins, for instance a Keycloak. The environment describes it:
 *
 *  - TEST_OIDC_ISSUER, TEST_OIDC_CLIENT_ID and TEST_OIDC_CLIENT_SECRET name it and the client of the gateway;
 *  - TEST_OIDC_ORIGIN (`http://localhost:8080`) is where it expects the gateway: the tests listen on that port;
 *  - TEST_OIDC_ADMIN is the subject of the user `admin`. It has the users of `npm start`, with their passwords;
 *  - TEST_OIDC_CONTROL_URL accepts POST /rotate-keys, /stop and /start, and does that to the provider.
 */
import type { ControlledProvider } from "./controlled-provider.ts";

const env = process.env;

/** Returns undefined if the tests use the embedded provider. */
export function externalProvider(): ControlledProvider | undefined {
  const { TEST_OIDC_ISSUER: issuer, TEST_OIDC_CONTROL_URL: controlUrl } = env;
  if (!issuer) return undefined;
  async function control(action: string): Promise<void> {
    if (!controlUrl) throw new Error(`TEST_OIDC_CONTROL_URL is not set: this test needs ${action}`);
    const { ok, status } = await fetch(`${controlUrl}/${action}`, { method: "POST" });
    if (!ok) throw new Error(`the provider did not ${action}: ${status}`);
  }
  return {
    issuer,
    client: {
      clientId: env.TEST_OIDC_CLIENT_ID ?? "todoke",
      clientSecret: env.TEST_OIDC_CLIENT_SECRET ?? "",
    },
    origin: env.TEST_OIDC_ORIGIN ?? "http://localhost:8080",
    adminSubject: env.TEST_OIDC_ADMIN ?? "admin",
    rotateKeys: () => control("rotate-keys"),
    stop: () => control("stop"),
    start: () => control("start"),
    async [Symbol.asyncDispose]() {},
  };
}
