import { createHash } from "node:crypto";
import { userInfo } from "node:os";
import { revokeKeys } from "@todoke/http";
import { fixedId, freePort, until } from "@todoke/kernel/testing";
import { notifyTopic, openWakeups } from "@todoke/kernel/worker";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, test } from "vitest";
import { openShell, runTodoke } from "../testing/command.ts";

const both = "--services entitlement,notification";

/** The schemas of two services, in one database or in two, without running services. */
async function setup({ apart = false } = {}) {
  const t = await servicesDatabase(["entitlement", "notification"]);
  const other = apart ? await servicesDatabase(["entitlement", "notification"]) : t;
  const env = { DATABASE_URL: t.url, NOTIFICATION_DATABASE_URL: other.url };
  const shell = openShell("todoke");
  const [entitlement, notification] = [t.open({ schema: "entitlement" }), other.open({ schema: "notification" })];
  const keys = (args: string, more: Record<string, string> = {}) => runTodoke(`keys ${args}`, { ...env, ...more });
  return {
    env,
    shell,
    entitlement,
    notification,
    keys,
    async json(args: string) {
      const { code, out, err } = await keys(`${args} --json`);
      expect({ code, err }).toEqual({ code: 0, err: "" });
      return JSON.parse(out);
    },
    async [Symbol.asyncDispose]() {
      await shell[Symbol.asyncDispose]();
      await other[Symbol.asyncDispose]();
      if (apart) await t[Symbol.asyncDispose]();
    },
  };
}

const sha256 = (key: string) => createHash("sha256").update(key).digest("hex");

test("a key is created in all services, printed once, listed without its secret, and revoked by its id", async () => {
  await using t = await setup({ apart: true });
  expect((await t.keys(`list ${both}`)).out).toBe("There are no valid keys.\n");
  const created = await t.keys(`create shop --scopes read,entitlements:write --expires 90d ${both}`);
  expect(created).toMatchObject({ code: 0, err: "" });
  const [, secret = "", keyId = ""] =
    /^(tdk_[\w-]{43})\n\n {2}key id {5}(\S{36})\n {2}holder {5}shop\n {2}scopes {5}entitlements:write, read\n {2}services {3}entitlement, notification\n {2}expires {4}20\S+Z\n\nThe key is printed only once/.exec(
      created.out,
    ) ?? [];
  expect(keyId, created.out).not.toBe("");

  const rows = [];
  for (const db of [t.entitlement, t.notification])
    rows.push(
      ...(
        await db.query(`select key_id, encode(sha256, 'hex') as sha256, created_by, k::text as whole from api_keys k`)
      ).rows,
    );
  const row = { key_id: keyId, sha256: sha256(secret), created_by: userInfo().username };
  expect(rows).toMatchObject([row, row]);
  expect(JSON.stringify(rows)).not.toContain(secret.slice(4));

  const listed = await t.keys(`list ${both}`);
  expect(listed.out).toMatch(
    new RegExp(
      `^ {2}key id .* last used\n {2}${keyId} {3}shop {5}entitlements:write,read {3}entitlement,notification .* never\n$`,
    ),
  );
  await t.entitlement.query(`update api_keys set last_used_at = '2026-11-15T12:00:00Z'`);
  const { keys } = await t.json(`list shop ${both}`);
  expect(keys).toMatchObject([
    { key_id: keyId, services: ["entitlement", "notification"], last_used_at: "2026-11-15T12:00:00.000000Z" },
  ]);
  expect(JSON.stringify(keys)).not.toContain(secret.slice(4));

  const revoked = await t.keys(`revoke ${keyId} ${both} --reason leaked --by aki`);
  expect(revoked).toMatchObject({ code: 0, err: "" });
  expect(revoked.out).toBe(
    `  ${keyId}   entitlement\n  ${keyId}   notification\nRevoked. Running services reject the key within 5 seconds.\n`,
  );
  expect((await t.keys(`list ${both}`)).out).toBe("There are no valid keys.\n");
  expect((await t.keys(`list --all ${both}`)).out).toMatch(/revoked \S+Z by aki: leaked\n$/);
  expect(await t.keys(`revoke ${keyId} ${both}`)).toMatchObject({
    code: 0,
    out: "It was already revoked.\n",
  });
});

test("a key may have a rate of its own, which is listed", async () => {
  await using t = await setup();
  for (const bad of ["0", "-1", "1.5", "1000001", "fast"])
    expect(await t.keys(`create shop --scopes read ${both} --per-second=${bad}`)).toMatchObject({
      code: 2,
      err: expect.stringContaining("--per-second is a whole number from 1 to 1000000."),
    });
  expect((await t.keys(`create shop --scopes read ${both}`)).out).not.toContain("rate");
  expect((await t.keys(`list ${both}`)).out).not.toContain("per second");
  const slow = await t.keys(`create slow --scopes read ${both} --per-second 5`);
  expect(slow.out).toContain("rate       5 requests per second to each process");
  const { keys } = await t.json(`list ${both}`);
  expect(keys).toMatchObject([
    { holder: "slow", per_second: 5 },
    { holder: "shop", per_second: null },
  ]);
  expect((await t.keys(`list ${both}`)).out).toMatch(/last used {3}per second\n.* 5\n.* default\n$/);
});

test("all keys of a holder are revoked together; an unknown holder is an error", async () => {
  await using t = await setup();
  const first = await t.json(`create shop --scopes read ${both}`);
  const second = await t.json(`create shop --scopes read --services entitlement`);
  const game = await t.json(`create game --scopes read ${both}`);
  expect(new Set([first, second, game].map(({ key }) => key)).size).toBe(3);
  expect((await t.keys(`revoke shop ${both}`)).out.match(/entitlement$|notification$/gm)).toHaveLength(3);
  expect((await t.json(`list ${both}`)).keys).toMatchObject([{ key_id: game.key_id }]);
  for (const name of ["nobody", fixedId(9)])
    expect(await t.keys(`revoke ${name} ${both}`)).toMatchObject({
      code: 1,
      out: "",
      err: expect.stringContaining(`No key has the id or the holder "${name}".`),
    });
});

test("no key is created if a service is not ready; if one fails later, the printed command creates the same key", async () => {
  await using t = await setup({ apart: true });
  const away = { NOTIFICATION_DATABASE_URL: "postgres://me:secret@127.0.0.1:1/none" };
  const none = await t.keys(`create shop --scopes read ${both}`, away);
  expect(none).toMatchObject({ code: 1, out: "" });
  expect(none.err).toMatch(/^✗ No key was created.\n {2}The database of notification failed: /);
  expect(none.err).not.toContain("secret");
  expect((await t.entitlement.query(`select from api_keys`)).rowCount).toBe(0);

  await t.notification.query(`alter table api_keys add constraint broken check (false)`);
  const part = await t.keys(`create shop --scopes read --expires 90d --per-second 5 ${both}`);
  expect(part).toMatchObject({ code: 1, out: expect.stringMatching(/^tdk_[\s\S]*\n {2}services {3}entitlement\n/) });
  const [secret = ""] = part.out.split("\n");
  const [, repeat = ""] =
    /^When this is fixed, create the same key there with:\n {2}todoke keys (.*)\n$/m.exec(part.err) ?? [];
  expect(repeat).toContain(`--services notification --id `);
  expect(part.err).not.toContain(secret);
  await t.notification.query(`alter table api_keys drop constraint broken`);
  for (const _ of ["first", "again"]) {
    const fixed = await t.keys(repeat);
    expect(fixed).toMatchObject({ code: 0, err: "" });
    expect(fixed.out).not.toContain("tdk_");
  }
  expect((await t.json(`list ${both}`)).keys).toMatchObject([{ services: ["entitlement", "notification"] }]);
  const { rows } = await t.notification.query(`select encode(sha256, 'hex') as sha256, per_second from api_keys`);
  expect(rows).toEqual([{ sha256: sha256(secret), per_second: 5 }]);
  const twice = await t.keys(`create game --scopes read --services notification --sha256 ${sha256(secret)}`);
  expect(twice.err).toContain("notification already has a key with this SHA-256 under another id.");
});

test("a key is revoked in every reachable service, and the others are printed", async () => {
  await using t = await setup({ apart: true });
  await t.json(`create shop --scopes read ${both}`);
  const away = { NOTIFICATION_DATABASE_URL: "postgres://me:secret@127.0.0.1:1/none" };
  const part = await t.keys(`revoke shop ${both}`, away);
  expect(part).toMatchObject({ code: 1, out: expect.stringMatching(/entitlement\nRevoked\./) });
  expect(part.err).toMatch(/^✗ The database of notification failed: .*\nThese services may still accept the key\./);
  expect(part.err).not.toContain("secret");
  expect((await t.json(`list --all ${both}`)).keys).toMatchObject([
    { state: expect.any(String), services: [expect.any(String)] },
    { services: [expect.any(String)] },
  ]);
  expect(await t.keys(`revoke shop ${both}`)).toMatchObject({
    code: 0,
    out: expect.stringMatching(/notification\nRev/),
  });
  expect((await t.json(`list ${both}`)).keys).toEqual([]);
});

test("a key expires after 90 days by default, and never with --never", async () => {
  await using t = await setup();
  const daysOf = async (args: string) => {
    const { key_id, expires_at } = await t.json(`create shop --scopes read ${args} --services entitlement`);
    const { rows } = await t.entitlement.query(
      `select expires_at, extract(day from expires_at - created_at)::int as days from api_keys where key_id = $1`,
      [key_id],
    );
    expect(rows[0].expires_at?.toISOString().slice(0, 19)).toBe(expires_at?.slice(0, 19));
    return rows[0].days;
  };
  // The expiry is computed just before the row is written.
  expect([89, 90]).toContain(await daysOf(""));
  expect([6, 7]).toContain(await daysOf("--expires 7d"));
  expect(await daysOf("--never")).toBeNull();
});

test("--services all creates the key in every service", async () => {
  await using t = await setup();
  const few = await t.keys("create shop --scopes read");
  expect(few).toMatchObject({ code: 2, out: "" });
  expect((await t.entitlement.query(`select from api_keys`)).rowCount).toBe(0);
  // The other services have no tables here, so the error shows which services were called.
  const all = await t.keys("create shop --scopes read --services all");
  expect(all.err).toContain("The schema of points is not up to date");
});

test("running services are woken for every created or revoked key", async () => {
  await using t = await setup();
  const woken: string[] = [];
  await using wakeups = openWakeups({ url: t.env.DATABASE_URL });
  const topics = ["entitlement.api_keys", "notification.api_keys"];
  for (const topic of topics) wakeups.on(topic, () => woken.push(topic));
  await wakeups.listening;
  for (const args of ["create shop --scopes read", "revoke shop"]) {
    woken.length = 0;
    await t.keys(`${args} ${both}`);
    await until("both services are woken", () => topics.every((topic) => woken.includes(topic)));
  }
});

test("a running service accepts a new key, and rejects a revoked one when it is woken", async () => {
  await using t = await setup();
  const port = await freePort();
  const serving = t.shell.start("serve entitlement", { ...t.env, ENTITLEMENT_PORT: String(port) });
  await serving.untilPrinted("entitlement   http");
  const statusOf = async (key: string) => {
    const headers = { authorization: `Bearer ${key}` };
    return (await fetch(`http://127.0.0.1:${port}/v1/users/u_1/entitlements`, { headers })).status;
  };
  const early = "tdk_made-elsewhere-and-tried-before-it-was-known";
  expect(await statusOf(early)).toBe(401);
  await t.keys(`create early --scopes read --services entitlement --sha256 ${sha256(early)}`);
  await until("the key is accepted", async () => (await statusOf(early)) === 200);
  const weak = await t.json("create weak --scopes points:write --services entitlement");
  expect(await statusOf(weak.key)).toBe(403);

  const { key } = await t.json("create shop --scopes read --services entitlement");
  expect(await statusOf(key)).toBe(200);
  // Like `todoke keys revoke`, without starting a process.
  await revokeKeys(t.entitlement, { holder: "shop" }, { by: "aki" });
  await notifyTopic(t.entitlement, "entitlement.api_keys");
  await until("the key is rejected before the cache expires", async () => (await statusOf(key)) === 401, {
    withinMs: 4_000,
  });
  serving.process.kill("SIGTERM");
  const { code, out, err } = await serving.ended;
  expect(code).toBe(0);
  for (const secret of [early, key, weak.key]) expect(out + err).not.toContain(secret);
});

test("a pair is printed as settings, with the steps to replace one", async () => {
  const { code, out, err } = await runTodoke("keys pair k2");
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toMatch(/\nGATEWAY_BFF_TOKEN_KEY=k2=[\w-]{43}\n/);
  expect(out).toMatch(/\nTODOKE_TOKEN_KEYS=gateway-bff\.k2=[\w-]{43}\n/);
  expect(out.match(/^ {2}[123]\. /gm)).toHaveLength(3);
  expect((await runTodoke("keys pair k2")).out).not.toBe(out);
});

test.each([
  ["", "Give a subcommand: "],
  ["creat", 'There is no subcommand "creat". Did you mean "create"?'],
  ["constructor", 'There is no subcommand "constructor".'],
  ["create --scopes read", "Name one holder: a-z"],
  ["create Shop --scopes read", "Name one holder: a-z"],
  ["create user:1 --scopes read", "Name one holder: a-z"],
  [
    "create shop",
    "--scopes with one or more of entitlements:write,points:write,orders:write,orders:read-all,orders:resume,orders:cancel-all,matchmaking:write,read.",
  ],
  ["create shop --scopes read", "Name the services that accept the key: --services <service,…>, or --services all."],
  ["create shop --scopes read --services all,points", "There is no"],
  ["create shop --scopes read --services all --expires 90d --never", "Give --expires or --never, not both."],
  ["list --never", "--never is not an option of list."],
  ["create shop --scopes read,fly", "--scopes with one or more of"],
  ["create shop --scopes read --expires 0d", "--expires is 1d to 3650d"],
  ["create shop --scopes read --expires soon", "--expires is 1d to 3650d"],
  ["create shop --scopes read --services entitlment", 'Did you mean "entitlement"?'],
  ["create shop --scopes read --services ,", "--services is a list of services"],
  ["create shop --scopes read --id 7", "--id is a UUID."],
  ["create shop --scopes read --sha256 tdk_x", "never the key itself"],
  [`create shop --scopes read --by ${"x".repeat(129)}`, "--by, 1 to 128 characters."],
  ["create shop --scopes read --all", "--all is not an option of create."],
  ["list a b", "Name one holder, or none for all."],
  ["revoke", "Name the id of a key, or a holder"],
  [`revoke shop --reason ${"x".repeat(501)}`, "--reason has 1 to 500 characters."],
  ["pair", "Name the pair, for example k2"],
  ["pair K=2", "Name the pair, for example k2"],
])('"keys %s" is rejected with what to do', async (args, says) => {
  const { code, out, err } = await runTodoke(`keys ${args}`, { DATABASE_URL: "postgres://127.0.0.1:1/none" });
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toContain(says);
  expect(err).toContain("Usage: todoke keys ");
});

test("a past expiry, a missing database and an unmigrated one are errors that say what to do", async () => {
  await using t = await setup();
  expect(await t.keys(`create shop --scopes read --expires 2020-01-31T00:00:00Z ${both}`)).toMatchObject({
    code: 2,
    err: expect.stringContaining("--expires is in the past."),
  });
  expect(await runTodoke(`keys list ${both}`)).toEqual({
    code: 2,
    out: "",
    err: "✗ entitlement, notification: set DATABASE_URL or <SERVICE>_DATABASE_URL to a PostgreSQL server\n",
  });
  await t.entitlement.query(`drop table api_keys`);
  expect(await t.keys("list --services entitlement")).toMatchObject({
    code: 1,
    err: "✗ The schema of entitlement is not up to date: run `todoke migrate entitlement`.\n",
  });
});
