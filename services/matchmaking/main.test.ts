import { hash, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatVerifyingKey, newSigningKey, openSigner, toVerifyingKey } from "@todoke/http";
import { memoryBus } from "@todoke/kernel/bus";
import { openFaultProxy, until } from "@todoke/kernel/testing";
import { sharedRedis } from "@todoke/redis/testing";
import { servicesDatabase } from "@todoke/service/testing";
import { describe, expect, test } from "vitest";
import { configErrors, start } from "./main.ts";

const redis = sharedRedis();
const key = newSigningKey("k1");
const signer = openSigner({ issuer: "gateway-bff", key });

/** The service as `todoke` starts it, called as the gateway calls it, with a mode of its own. */
async function setup(more: Record<string, string> = {}) {
  const parts = new AsyncDisposableStack();
  const t = parts.use(await servicesDatabase(["matchmaking"]));
  const folder = mkdtempSync(join(tmpdir(), "todoke-rules-"));
  parts.defer(() => rmSync(folder, { recursive: true }));
  const [mode, path] = [`m${randomUUID().slice(0, 8)}`, join(folder, "rules.yaml")];
  writeFileSync(path, `modes:\n  ${mode}: {}\n`);
  const env = {
    DATABASE_URL: t.url,
    MATCHMAKING_PORT: "0",
    MATCHMAKING_RULES: path,
    LOG_LEVEL: "silent",
    TODOKE_API_KEYS: `shop=read=${hash("sha256", "tdk_shop", "hex")}`,
    TODOKE_TOKEN_KEYS: formatVerifyingKey(toVerifyingKey("gateway-bff", key)),
    ...more,
  };
  const startOne = async (roles = "") =>
    parts.use(await start({ ...env, MATCHMAKING_ROLES: roles }, { openBus: async () => memoryBus() }));
  const service = await startOne(more.MATCHMAKING_ROLES);
  const tokenOf = (userId: string) => signer.tokenFor("matchmaking", { userId, roles: ["USER"] });
  async function call(method: string, path: string, token: string, payload?: object) {
    const answer = await fetch(`${service.url}/v1/matchmaking${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        "idempotency-key": "key-1",
        ...(payload && { "content-type": "application/json" }),
      },
      ...(payload && { body: JSON.stringify(payload) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: any response body.
    return { status: answer.status, body: (await answer.json()) as any };
  }
  /** Retries a 503 with the same key, like a client. */
  async function asked(...request: Parameters<typeof call>) {
    let answer = await call(...request);
    await until("it is answered", async () => {
      if (answer.status === 503) answer = await call(...request);
      return answer.status !== 503;
    });
    return answer;
  }
  async function checks() {
    const answer = await fetch(`${service.url}/readyz`);
    return ((await answer.json()) as { checks: { name: string; ok: boolean }[] }).checks;
  }
  return {
    mode,
    path,
    env,
    startOne,
    call,
    db: t.open({ schema: "matchmaking" }),
    as: (userId: string) => ({
      join: async () => asked("POST", `/queues/${mode}/tickets`, await tokenOf(userId), {}),
      joinOnce: async () => call("POST", `/queues/${mode}/tickets`, await tokenOf(userId), {}),
      show: async (id: string) => (await asked("GET", `/tickets/${id}`, await tokenOf(userId))).body,
    }),
    ops: async (path: string) => fetch(`${service.opsUrl}${path}`),
    metrics: async () => (await (await fetch(`${service.opsUrl}/metrics`)).text()).split("\n"),
    checks: async () => (await checks()).map(({ name }) => name),
    notReady: async () => (await checks()).filter(({ ok }) => !ok).map(({ name }) => name),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

type Setup = Awaited<ReturnType<typeof setup>>;

/** Joins two users, waits until they are matched, and returns both tickets. */
async function matchTwo(t: Setup, users: readonly [string, string]) {
  const tickets: string[] = [];
  for (const user of users) tickets.push((await t.as(user).join()).body.ticket_id);
  const shown = () => Promise.all(users.map((user, place) => t.as(user).show(tickets[place] ?? "")));
  await until("both are matched", async () => (await shown()).every(({ status }) => status === "MATCHED"));
  return shown();
}

describe.each(["postgres", "redis"] as const)("the service, with the queue in %s", (store) => {
  const stage = (more: Record<string, string> = {}) =>
    setup({ ...more, ...(store === "redis" && { REDIS_URL: redis.url }) });

  test("two players who join are matched; the match is published once and counted", async () => {
    await using t = await stage();
    const [one, other] = await matchTwo(t, ["u_1", "u_2"]);
    expect(one).toMatchObject({ match_id: other.match_id, team: 1, peers: [{ user_id: "u_2", team: 2 }] });
    const events = () => t.db.query(`select event_type, status from outbox_events`);
    await until("it is published", async () => (await events()).rows[0]?.status === "PUBLISHED");
    expect((await events()).rows).toEqual([{ event_type: "MatchMade", status: "PUBLISHED" }]);
    const { mode } = t;
    // The process counts shortly after the commit.
    await expect
      .poll(t.metrics)
      .toEqual(
        expect.arrayContaining([
          `matchmaking_match_total{mode="${mode}",result="made"} 1`,
          `matchmaking_ticket_total{mode="${mode}",result="joined"} 2`,
          `matchmaking_time_to_match_seconds_count{mode="${mode}"} 2`,
          expect.stringContaining(`matchmaking_queue_depth{mode="${mode}"}`),
          expect.stringContaining(`matchmaking_queue_oldest_age_seconds{mode="${mode}"}`),
          'matchmaking_outbox_backlog{status="pending"} 0',
          ...(store === "redis" ? [`matchmaking_ends_backlog{mode="${mode}"} 0`] : []),
        ]),
      );
    const redisToo = store === "redis" ? ["redis"] : [];
    expect(await t.checks()).toEqual(["event-loop", "database", ...redisToo]);
  });

  test("roles can run in separate processes", async () => {
    await using t = await stage({ MATCHMAKING_ROLES: "api" });
    const [{ body: first }] = [await t.as("u_1").join(), await t.as("u_2").join()];
    expect(await t.as("u_1").show(first.ticket_id)).toMatchObject({ status: "QUEUED" });
    const matcher = await t.startOne("matcher,recorder");
    expect((await fetch(`${matcher.url}/v1/matchmaking/queues`)).status).toBe(404);
    await until("it is matched", async () => (await t.as("u_1").show(first.ticket_id)).status === "MATCHED");
  });

  test("a mode that left the rules before a process started still has its ends recorded", async () => {
    await using t = await stage({ MATCHMAKING_ROLES: "api" });
    // The two tickets for the match outlive a slow start of a process.
    for (const user of ["u_1", "u_2"]) expect((await t.as(user).join()).status).toBe(201);
    writeFileSync(t.path, `modes:\n  ${t.mode}: { ticket_seconds: 5 }\n`);
    const isShort = async () => (await t.call("GET", "/queues", "tdk_shop")).body.queues[0].ticket_seconds === 5;
    await until("tickets are short", isShort);
    expect((await t.as("u_3").join()).status).toBe(201);
    // This process has no recorder. It starts after all joins, so the depth that it reports only falls: two or three before
    // the match, one or none after it.
    const matching = await t.startOne("matcher");
    const depth = new RegExp(`^matchmaking_queue_depth\\{mode="${t.mode}"\\} [01]$`, "m");
    const isMatched = async () => depth.test(await (await fetch(`${matching.opsUrl}/metrics`)).text());
    await until("two are matched", isMatched);
    await matching[Symbol.asyncDispose]();

    writeFileSync(t.path, "modes:\n  another: {}\n");
    await t.startOne("matcher,recorder");
    const ends = async () => {
      const { rows } = await t.db.query<{ status: string }>(`select status from ticket_ends order by status`);
      return rows.map(({ status }) => status).join();
    };
    await until("all have ended", async () => (await ends()) === "EXPIRED,MATCHED,MATCHED");
  });
});

test("while Redis is unavailable, joins return 503, the service is not ready and errors are counted", async () => {
  await using wire = await openFaultProxy(redis.url);
  await using t = await setup({ REDIS_URL: wire.url });
  const { body: waiting } = await t.as("u_1").join();
  wire.dropAll();
  const refused = await t.as("u_2").joinOnce();
  expect([refused.status, refused.body.code]).toEqual([503, "unavailable"]);
  // On a busy machine other checks may fail for a moment; this one keeps failing.
  await expect.poll(t.notReady).toEqual(["redis"]);
  await until("it is counted", async () =>
    (await t.metrics()).some((line) => /^matchmaking_dependency_error_total\{type="redis"\} [1-9]/.test(line)),
  );
  wire.stopDropping();
  expect((await t.as("u_2").join()).status).toBeLessThan(300);
  await until("both are matched", async () => (await t.as("u_1").show(waiting.ticket_id)).status === "MATCHED");
  await expect.poll(t.notReady).toEqual([]);
});

test("a change of the rules file takes effect without a restart, an invalid one does not", async () => {
  await using t = await setup();
  const rules = async () =>
    (await (await t.ops("/debug/matchmaking/rules")).json()) as { version: string; modes: { mode: string }[] };
  const before = await rules();
  expect(before.modes).toMatchObject([{ mode: t.mode, teams: 2, teamSize: 1 }]);
  writeFileSync(t.path, "modes:\n  trio: { teams: many }\n");
  writeFileSync(t.path, "modes:\n  trio: { teams: 3 }\n");
  await until("they hold", async () => (await rules()).modes[0]?.mode === "trio");
  expect((await rules()).version).not.toBe(before.version);
  expect((await t.as("u_1").join()).body.code).toBe("unknown-mode");
  const { body } = await t.call("GET", "/queues", "tdk_shop");
  expect(body.queues).toMatchObject([{ mode: "trio", teams: 3 }]);
});

test("a process with invalid rules does not start and reports the line", async () => {
  await using t = await setup();
  writeFileSync(t.path, "modes:\n  duel: {}\n  trio: { teams: many }\n");
  await expect(t.startOne()).rejects.toThrow(/rules\.yaml:3: .*teams/);
});

test("quarantined tickets are listed on the ops listener only", async () => {
  await using t = await setup();
  await t.db.query(
    `insert into damaged_tickets (ticket_id, mode, raw, why, ended_at) values ('duel.x', 'duel', '{', 'it is no JSON', now())`,
  );
  const { damaged } = (await (await t.ops("/debug/matchmaking/damaged")).json()) as { damaged: unknown };
  expect(damaged).toMatchObject([{ ticket_id: "duel.x", mode: "duel", raw: "{", why: "it is no JSON" }]);
});

test("ended tickets are kept for MATCHMAKING_KEEP_DAYS", async () => {
  await using t = await setup({ MATCHMAKING_ROLES: "api", MATCHMAKING_KEEP_DAYS: "2" });
  await t.db.query(
    `insert into damaged_tickets (ticket_id, mode, raw, why, ended_at)
     select days || ' days old', 'duel', '{', 'it is no JSON', now() - days * interval '1 day' from unnest(array[1, 3]) days`,
  );
  await t.startOne("maintenance");
  const kept = async () => (await t.db.query(`select ticket_id from damaged_tickets`)).rows;
  await expect.poll(kept).toEqual([{ ticket_id: "1 days old" }]);
});

test("only tokens of the gateway for this service, and API keys for figures, are accepted", async () => {
  await using t = await setup();
  const user = { userId: "u_1", roles: ["USER"] as const };
  const forged = openSigner({ issuer: "gateway-bff", key: newSigningKey("k1") });
  const join = async (token: string) => (await t.call("POST", `/queues/${t.mode}/tickets`, token, {})).status;
  expect(await join(await forged.tokenFor("matchmaking", user))).toBe(401);
  expect(await join(await signer.tokenFor("account", user))).toBe(401);
  expect(await join(await signer.tokenFor("matchmaking"))).toBe(403);
  expect(await join("tdk_shop")).toBe(403);
  expect((await t.call("GET", `/queues/${t.mode}/stats`, "tdk_shop")).status).toBe(200);
});

test.each([
  [{ MATCHMAKING_TICKET_SECRET: "A".repeat(43) }, "ticket-lost"],
  [{}, "ticket-not-found"],
])("with the settings %o the owner of a lost ticket gets %s", async (settings, code) => {
  await using t = await setup(settings);
  const { body } = await t.as("u_1").join();
  await t.db.query(`delete from tickets`);
  expect(await t.as("u_1").show(body.ticket_id)).toMatchObject({ status: 404, code });
  expect(await t.as("u_2").show(body.ticket_id)).toMatchObject({ status: 404, code: "ticket-not-found" });
});

test("invalid settings are reported together", () => {
  const env = { DATABASE_URL: "postgres://localhost/x" };
  expect(configErrors(env)).toEqual([]);
  expect(configErrors({ ...env, MATCHMAKING_ROLES: "api,sender", MATCHMAKING_STORE: "disk" })).toEqual([
    "MATCHMAKING_ROLES should name one or more of api, consumer, maintenance, matcher, recorder, relay, with commas between them",
    "MATCHMAKING_STORE should be postgres or redis",
  ]);
});
