import { hash } from "node:crypto";
import { formatVerifyingKey, newSigningKey, openSigner, type Role, toVerifyingKey } from "@todoke/http";
import { memoryBus } from "@todoke/kernel/bus";
import { until } from "@todoke/kernel/testing";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, test } from "vitest";
import { configErrors, start } from "./main.ts";

const key = newSigningKey("k1");
const signer = openSigner({ issuer: "gateway-bff", key });

const envOf = (databaseUrl: string) => ({
  DATABASE_URL: databaseUrl,
  ACCOUNT_PORT: "0",
  LOG_LEVEL: "silent",
  TODOKE_API_KEYS: `shop=read=${hash("sha256", "tdk_shop", "hex")}`,
  TODOKE_TOKEN_KEYS: formatVerifyingKey(toVerifyingKey("gateway-bff", key)),
  ACCOUNT_ADMINS: "https://id.example boss",
});

/** The whole service, as `todoke` starts it, called as the gateway calls it. */
async function setup() {
  const t = await servicesDatabase(["account"]);
  const env = envOf(t.url);
  const service = await start(env, { openBus: async () => memoryBus() });
  const db = t.open({ schema: "account" });
  async function call(path: string, token: string, payload?: object) {
    const response = await fetch(`${service.url}${path}`, {
      method: payload ? "POST" : "GET",
      headers: { authorization: `Bearer ${token}`, "idempotency-key": "key-1", "content-type": "application/json" },
      ...(payload && { body: JSON.stringify(payload) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: any JSON.
    return { status: response.status, body: (await response.json()) as any };
  }
  return {
    db,
    call,
    metrics: async () => (await fetch(`${service.opsUrl}/metrics`)).text(),
    tokenOf: ({ user_id, roles }: { user_id: string; roles: Role[] }) =>
      signer.tokenFor("account", { userId: user_id, roles }),
    resolve: async (subject: string) =>
      call("/identities:resolve", await signer.tokenFor("account"), { provider: "https://id.example", subject }),
    published: (type: string) =>
      until(`${type} is published`, async () => {
        const { rowCount } = await db.query(
          `select from outbox_events where event_type = $1 and status = 'PUBLISHED'`,
          [type],
        );
        return (rowCount ?? 0) > 0;
      }),
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await t[Symbol.asyncDispose]();
    },
  };
}

test("from login to the end of a suspension, events are published and commands counted", async () => {
  await using t = await setup();
  const { body: aki } = await t.resolve("aki");
  const { body: boss } = await t.resolve("boss");
  await t.published("AccountCreated");
  await t.published("AccountRolesChanged");
  const suspension = { reason: "cheating", until: "2999-01-01T00:00:00Z" };
  const suspend = async () => t.call(`/admin/users/${aki.user_id}:suspend`, await t.tokenOf(boss), suspension);
  expect(await suspend()).toMatchObject({ status: 200, body: { status: "SUSPENDED", version: 2 } });
  await suspend();
  await t.published("AccountSuspended");
  await t.db.query(`update users set suspended_until = now() where suspended_until is not null`);
  await t.published("AccountReinstated");
  const mine = await t.call(`/users/${aki.user_id}`, await t.tokenOf(aki));
  expect(mine).toMatchObject({ status: 200, body: { status: "ACTIVE", version: 3 } });
  // The process counts shortly after the commit.
  await expect
    .poll(async () => (await t.metrics()).split("\n"))
    .toEqual(
      expect.arrayContaining([
        'account_command_total{action="resolve",result="applied"} 2',
        'account_command_total{action="suspend",result="applied"} 1',
        'account_command_total{action="suspend",result="replayed"} 1',
        "account_outbox_publish_delay_seconds_count 5",
        'account_outbox_backlog{status="pending"} 0',
        "account_outbox_backlog_age_seconds 0",
        "account_outbox_failed_current 0",
      ]),
    );
});

test("only a token that the gateway signed for this service is accepted", async () => {
  await using t = await setup();
  const { body: aki } = await t.resolve("aki");
  const path = `/users/${aki.user_id}`;
  const forged = openSigner({ issuer: "gateway-bff", key: newSigningKey("k1") });
  const user = { userId: aki.user_id, roles: ["USER"] as const };
  expect((await t.call(path, await forged.tokenFor("account", user))).status).toBe(401);
  expect((await t.call(path, await signer.tokenFor("entitlement", user))).status).toBe(401);
  expect((await t.call(path, "tdk_shop")).status).toBe(403);
  const resolve = { provider: "https://id.example", subject: "boss" };
  expect((await t.call("/identities:resolve", await signer.tokenFor("account", user), resolve)).status).toBe(403);
  expect((await t.call(path, await signer.tokenFor("account", user))).status).toBe(200);
});

test("an invalid entry of ACCOUNT_ADMINS is a settings error", () => {
  const env = envOf("postgres://localhost/x");
  expect(configErrors(env)).toEqual([]);
  expect(configErrors({ ...env, ACCOUNT_ADMINS: "https://a b, https://a c," })).toEqual([]);
  expect(configErrors({ ...env, ACCOUNT_ADMINS: "https://a b, boss" })).toEqual([
    "ACCOUNT_ADMINS: entry 2 should be <provider> <subject>, with one space between them",
  ]);
});
