import { until } from "@todoke/kernel/testing";
import { expect, onTestFinished, test } from "vitest";
import { startGateway } from "../oidc/testing/gateway.ts";
import { startLyingProvider } from "../oidc/testing/lying-provider.ts";
import { refreshTokens } from "./refresh-tokens.ts";

/** A user is logged in, and the access token expires soon. */
async function setup() {
  const provider = await startLyingProvider();
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const gateway = await startGateway({ issuer: provider.issuer });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const browser = gateway.browser();
  await browser.logIn();
  const token = browser.cookies.get("__Host-todoke") ?? "";
  const errors: unknown[] = [];
  const makeDue = () => gateway.db.query("update sessions set refresh_due_at = now() - interval '1 second'");
  await makeDue();
  const found = () => gateway.sessions.find(token);
  const session = await found();
  if (!session) throw new Error("no session");
  /** The worker of one process. */
  const refresher = () => {
    const refresh = refreshTokens({ ...gateway, onError: (error) => void errors.push(error) });
    return { refresh: () => refresh(session), done: () => refresh[Symbol.asyncDispose]() };
  };
  const tokens = () => gateway.sessions.getTokens(session.sessionId);
  const dbTime = async () => (await gateway.db.query("select clock_timestamp()::text as now")).rows[0]?.now;
  return { provider, gateway, session, found, makeDue, refresher, tokens, dbTime, errors };
}

test("many processes refresh tokens that expire soon once, and store the new ones", async () => {
  const t = await setup();
  expect(t.session.refreshDue).toBe(true);
  const before = await t.tokens();
  const processes = Array.from({ length: 4 }, t.refresher);
  for (const process of [...processes, ...processes]) process.refresh();
  await Promise.all(processes.map((process) => process.done()));
  // A second use of a refresh token would have ended everything: this provider takes each once.
  expect(t.provider.callsOf("/token")).toBe(2);
  const after = await t.tokens();
  expect(after?.refreshToken).toMatch(/^refresh-/);
  expect(after?.refreshToken).not.toBe(before?.refreshToken);
  expect(after?.accessToken).not.toBe(before?.accessToken);
  expect(await t.found()).toMatchObject({ refreshDue: false, status: "ACTIVE" });
  expect(t.errors).toEqual([]);

  // And what was kept is good for the next time.
  await t.makeDue();
  const again = t.refresher();
  again.refresh();
  await again.done();
  expect(t.provider.callsOf("/token")).toBe(3);
  expect(await t.found()).toMatchObject({ refreshDue: false });
});

test("no second process refreshes while the first waits for the provider", async () => {
  const t = await setup();
  const [begun, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow = async () => {
    begun.resolve();
    await goOn.promise;
    return false;
  };
  t.provider.lies = { instead: { "/token": slow } };
  const [first, second] = [t.refresher(), t.refresher()];
  first.refresh();
  await begun.promise;
  second.refresh();
  await second.done();
  goOn.resolve();
  await first.done();
  expect(t.provider.callsOf("/token")).toBe(2);
  expect(await t.found()).toMatchObject({ refreshDue: false });
});

test("a refused refresh token ends the session", async () => {
  const t = await setup();
  t.provider.forgetAll();
  const process = t.refresher();
  process.refresh();
  await process.done();
  expect(await t.found()).toBeUndefined();
  expect(t.errors).toEqual([]);
});

test("an unavailable provider ends no session, and the refresh is due again after 10 s", async () => {
  const t = await setup();
  const before = await t.tokens();
  await t.provider.down();
  const begun = await t.dbTime();
  const process = t.refresher();
  process.refresh();
  await process.done();
  expect(t.errors).toHaveLength(1);
  expect(await t.found()).toMatchObject({ status: "ACTIVE" });
  // Ten seconds after it was postponed.
  const { rows } = await t.gateway.db.query(
    `select refresh_due_at between $1::timestamptz + interval '10 s' and clock_timestamp() + interval '10 s' as in_time
       from sessions`,
    [begun],
  );
  expect(rows).toEqual([{ in_time: true }]);
  expect(await t.tokens()).toEqual(before);

  await t.provider.up();
  await t.makeDue();
  process.refresh();
  await process.done();
  expect((await t.tokens())?.refreshToken).not.toBe(before?.refreshToken);
  t.gateway.expectUnseen(t.provider.secrets);
});

test.each([
  ["about another subject", { sub: "mallory" }],
  ["by another issuer", { iss: "https://other.example" }],
  ["for another client", { azp: "another" }],
])("a refreshed ID token %s is not stored", async (_name, claims) => {
  const t = await setup();
  const before = await t.tokens();
  t.provider.lies = { claims };
  const process = t.refresher();
  process.refresh();
  await process.done();
  expect(await t.tokens()).toEqual(before);
  expect(t.errors).toHaveLength(1);
});

test("new tokens do not restore a session that has ended", async () => {
  const t = await setup();
  const gate = Promise.withResolvers<void>();
  const received = () => {
    gate.resolve();
    return false as const;
  };
  t.provider.lies = { instead: { "/token": received } };
  const process = t.refresher();
  process.refresh();
  await gate.promise;
  await t.gateway.sessions.end(t.session.userId, t.session.sessionId);
  await process.done();
  expect(await t.found()).toBeUndefined();
  expect(t.errors).toEqual([]);
});

test("an unavailable store is reported and the worker continues", async () => {
  const t = await setup();
  const refresh = refreshTokens({
    provider: t.gateway.provider,
    sessions: { ...t.gateway.sessions, claimRefresh: () => Promise.reject(new Error("the store is away")) },
    onError: (error) => void t.errors.push(error),
  });
  refresh(t.session);
  await until("it was reported", () => t.errors.length > 0);
});

test("storing new tokens is retried when the store fails", async () => {
  const t = await setup();
  const before = await t.tokens();
  let failures = 0;
  const refresh = refreshTokens({
    provider: t.gateway.provider,
    sessions: {
      ...t.gateway.sessions,
      saveTokens: (...save) =>
        failures++ < 3 ? Promise.reject(new Error("the store is away")) : t.gateway.sessions.saveTokens(...save),
    },
    onError: (error) => void t.errors.push(error),
  });
  refresh(t.session);
  await refresh[Symbol.asyncDispose]();
  expect(t.errors).toEqual([]);
  expect((await t.tokens())?.refreshToken).not.toBe(before?.refreshToken);
  // And they are good for the next time: had they been dropped, the provider would end the session now.
  await t.makeDue();
  const process = t.refresher();
  process.refresh();
  await process.done();
  expect(await t.found()).toMatchObject({ status: "ACTIVE", refreshDue: false });
});

test("a process that was frozen during its lease does not send the refresh token", async () => {
  const t = await setup();
  let clock = 0;
  const frozen = refreshTokens({
    provider: t.gateway.provider,
    sessions: {
      ...t.gateway.sessions,
      claimRefresh: async (...asked) => {
        const turn = await t.gateway.sessions.claimRefresh(...asked);
        clock += 30_000; // Frozen for so long, right after it got its turn.
        return turn;
      },
    },
    onError: (error) => void t.errors.push(error),
    now: () => clock,
  });
  frozen(t.session);
  await frozen[Symbol.asyncDispose]();
  expect(t.provider.callsOf("/token")).toBe(1); // The login, and nothing after it.
  expect(t.errors).toHaveLength(1);
  expect(await t.found()).toMatchObject({ status: "ACTIVE" });
});

test("a refusal that arrives after the lease was lost ends no session", async () => {
  const t = await setup();
  const [begun, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  t.provider.lies = {
    instead: {
      "/token": async () => {
        begun.resolve();
        await goOn.promise;
        return false;
      },
    },
  };
  const slow = t.refresher();
  slow.refresh();
  await begun.promise;
  // Its turn lapses, and another process refreshes: now the token that the first one has sent is spent.
  t.provider.lies = {};
  await t.makeDue();
  const quick = t.refresher();
  quick.refresh();
  await quick.done();
  goOn.resolve();
  await slow.done();
  expect(await t.found()).toMatchObject({ status: "ACTIVE", refreshDue: false });
});

/** New tokens come at once, and the store fails to keep them; by the process's clock each failure takes so long. */
function unableToSave({ failureMs }: { readonly failureMs: number }) {
  const [seen, errors] = [{ turns: 0, saves: 0 }, [] as unknown[]];
  const session = { sessionId: "s_1", userId: "u_1" };
  const tokens = { idToken: "id-1", accessToken: "access-1", refreshToken: "refresh-1" };
  let clock = 0;
  const refresh = refreshTokens({
    provider: { refresh: async () => ({ kind: "refreshed", tokens }) },
    sessions: {
      claimRefresh: async () => ({ sessionId: "s_1", issuer: "https://id.example", tokens, epoch: ++seen.turns }),
      saveTokens: async () => {
        seen.saves++;
        clock += failureMs;
        throw new Error("the store is away");
      },
      postponeRefresh: async () => {},
      endOnRefusedRefresh: async () => false,
    },
    onError: (error) => void errors.push(error),
    now: () => clock,
  });
  return { refresh, session, seen, errors };
}

test("storing new tokens is not retried after the lease has expired", async () => {
  const { refresh, session, seen, errors } = unableToSave({ failureMs: 50_000 });
  refresh(session);
  await until("it is not retried", () => errors.length > 0 || seen.saves > 3);
  expect([seen.saves, errors.length]).toEqual([3, 1]);
});

test("a stopping process retries storing tokens for 10 s", async () => {
  const { refresh, session, seen, errors } = unableToSave({ failureMs: 6_000 });
  refresh(session);
  await refresh[Symbol.asyncDispose]();
  expect([seen.saves, errors.length]).toEqual([2, 1]);
});

test("a process does not start a second refresh of the same session", async () => {
  const { refresh, session, seen } = unableToSave({ failureMs: 120_000 });
  refresh(session);
  refresh(session);
  await refresh[Symbol.asyncDispose]();
  expect(seen.turns).toBe(1);
});

test("a process refreshes at most 100 sessions at a time", async () => {
  const { refresh, session, seen } = unableToSave({ failureMs: 120_000 });
  for (let n = 0; n < 101; n++) refresh({ ...session, sessionId: `s_${n}` });
  await refresh[Symbol.asyncDispose]();
  expect(seen.turns).toBe(100);
});
