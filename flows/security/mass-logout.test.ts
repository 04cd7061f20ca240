/**
 * A provider that logs everybody out at once is heard to the last token, though strangers at its own address send forged
 * ones meanwhile; and strangers are limited as everybody is.
 */
import { generateKeyPairSync, type KeyObject, randomUUID, sign } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startAll } from "../all-services.ts";
import { ask } from "./asking.ts";

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

/** As much of an OpenID provider as a log-out needs: who it is, and its keys. */
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

async function say(token: string, n: number): Promise<number> {
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const body = `logout_token=${token}`;
  return (await ask(`${all.gateways[n % 2]}/login/backchannel-logout`, { method: "POST", headers, body })).status;
}

const countOf = (statuses: readonly number[]) => Object.groupBy(statuses, (status) => status);

test("two hundred genuine log-outs at once end two hundred sessions; as many forged ones are refused and held back", async () => {
  const count = 200;
  const user = await all.makeUser("everybody");
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

  const [heard, refused] = await Promise.all([Promise.all(genuine.map(say)), Promise.all(forged.map(say))]);
  expect(Object.keys(countOf(heard))).toEqual(["200"]);
  const { 400: looked = [], 429: held = [], ...others } = countOf(refused);
  expect(others).toEqual({});
  // A third of the quota of writes and one more at once, and one in half a minute while this runs.
  expect(looked.length).toBeGreaterThan(0);
  expect(looked.length).toBeLessThan(60);
  expect(held.length + looked.length).toBe(count);
  const { rows } = await all.db.query(`select count(*)::int from gateway_bff.sessions where issuer = $1`, [
    provider.issuer,
  ]);
  expect(rows).toEqual([{ count: 0 }]);
  // Each counts once: what was heard is not heard again.
  expect(await say(genuine[0] ?? "", 1)).toBe(400);
});
