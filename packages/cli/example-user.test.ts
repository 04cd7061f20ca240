import { once } from "node:events";
import { createServer } from "node:http";
import { freePort } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { createSecrets } from "./dev-secrets.ts";
import { resolveExampleUser } from "./example-user.ts";

const issuer = "http://127.0.0.1:8089";
const user = { username: "alice", password: "x" };

/** An account service that gives every request the same response. */
async function serveAccount(status: number, body: string) {
  const server = createServer((_, reply) => reply.writeHead(status).end(body)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${Object(server.address()).port}`;
  return { url, [Symbol.asyncDispose]: async () => void server.close() };
}

test("the key of the printed grant belongs to the user", async () => {
  await using account = await serveAccount(200, '{"user_id":"01a1efe3-17e2-706a-ba6e-ccc7ace195fc"}');
  const env = { ...(await createSecrets()), ACCOUNT_URL: account.url };
  const expected = { userId: "01a1efe3-17e2-706a-ba6e-ccc7ace195fc", purchaseId: "p_95fc" };
  expect(await resolveExampleUser(env, issuer, user)).toEqual(expected);
});

test("without an account service that accepts the gateway's key there is no demo user, and no error", async () => {
  await using refusing = await serveAccount(401, '{"status":401,"code":"unauthenticated"}');
  await using broken = await serveAccount(502, "<html>");
  const secrets = await createSecrets();
  for (const url of [refusing.url, broken.url, `http://127.0.0.1:${await freePort()}`])
    expect(await resolveExampleUser({ ...secrets, ACCOUNT_URL: url }, issuer, user)).toBeUndefined();
  expect(await resolveExampleUser(secrets, issuer, user)).toBeUndefined();
  expect(await resolveExampleUser({ ACCOUNT_URL: refusing.url }, issuer, user)).toBeUndefined();
});
