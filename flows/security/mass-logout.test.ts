/** All back-channel logouts of a provider take effect, while forged ones from the same address are limited. */
import { generateKeyPairSync, type KeyObject, randomUUID, sign } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startAll } from "../all-services.ts";
import { send } from "./http-client.ts";

type All = Awaited<ReturnType<typeof startAll>>;
let [all, provider] = [undefined as unknown as All, undefined as unknown as Awaited<ReturnType<typeof startProvider>>];
beforeAll(async () => {
  provider = await startProvider();
  all = await startAll({
    gateways: 2,
    settings: {
      OIDC_ISSUER: provider.issuer,
      GATEWAY_BFF_LIMIT_WRITE: "120/3600s",
      GATEWAY_BFF_LIMIT_ADDRESS: "6000/60s",
    },
  });
});
afterAll(async () => {
  await all[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

/** An OpenID provider with metadata and keys only. */
async function startProvider() {
  const { privateKey, publicKey } = newKeyPair();
  const keys = [{ ...publicKey.export({ format: "jwk" }), kid: "k1", alg: "ES256", use: "sig" }];
  const server = createServer(({ url }, response) => {
    const metadata = { issuer, jwks_uri: `${issuer}/jwks`, authorization_endpoint: `${issuer}/authorize` };
    response.setHeader("content-type", "application/json").end(JSON.stringify(url === "/jwks" ? { keys } : metadata));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    issuer,
    privateKey,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

const newKeyPair = () => generateKeyPairSync("ec", { namedCurve: "P-256" });

const event = "http://schemas.openid.net/event/backchannel-logout";

function logoutToken(sid: string, key: KeyObject): string {
  const iat = Math.floor(Date.now() / 1_000);
  const times = { iat, exp: iat + 120, jti: randomUUID() };
  const claims = { iss: provider.issuer, aud: "todoke", sid, events: { [event]: {} }, ...times };
  const header = { alg: "ES256", kid: "k1", typ: "logout+jwt" };
  const text = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
  return `${text}.${sign("sha256", Buffer.from(text), { key, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
}

async function sendLogout(token: string, n: number): Promise<number> {
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const body = `logout_token=${token}`;
  return (await send(`${all.gateways[n % 2]}/login/backchannel-logout`, { method: "POST", headers, body })).status;
}

const byStatus = (statuses: readonly number[]) => Object.groupBy(statuses, (status) => status);

test("200 genuine logouts end 200 sessions, and 200 forged ones are rejected or limited", async () => {
  const count = 200;
  const user = await all.createUser("mass-logout");
  await all.openSession(user);
  await all.db.query(
    `insert into gateway_bff.sessions (session_id, token_sha256, user_id, client, issuer, subject, provider_session,
                                       provider_tokens, created_at, last_seen_at, ends_at)
     select gen_random_uuid(), sha256(('t' || n)::bytea), $1, 'native', $2, 's', 'sid-' || n,
            '', now(), now(), now() + interval '1 hour' from generate_series(0, $3::int - 1) n`,
    [user.userId, provider.issuer, count],
  );
  const stranger = newKeyPair().privateKey;
  const numbers = Array.from({ length: count }, (_, n) => n);
  const genuine = numbers.map((n) => logoutToken(`sid-${n}`, provider.privateKey));
  const forged = numbers.map((n) => logoutToken(`sid-${n}`, stranger));

  const [received, refused] = await Promise.all([
    Promise.all(genuine.map(sendLogout)),
    Promise.all(forged.map(sendLogout)),
  ]);
  expect(Object.keys(byStatus(received))).toEqual(["200"]);
  const { 400: invalid = [], 429: limited = [], ...others } = byStatus(refused);
  expect(others).toEqual({});
  // The burst is a third of the write quota plus one, with one more per half minute.
  expect(invalid.length).toBeGreaterThan(0);
  expect(invalid.length).toBeLessThan(60);
  expect(limited.length + invalid.length).toBe(count);
  const { rows } = await all.db.query(`select count(*)::int from gateway_bff.sessions where issuer = $1`, [
    provider.issuer,
  ]);
  expect(rows).toEqual([{ count: 0 }]);
  // A logout token is accepted once.
  expect(await sendLogout(genuine[0] ?? "", 1)).toBe(400);
});
