import type { ServerResponse } from "node:http";
import { fixedId, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { alice, balanceView, bearerOf, bob, setup, ticketId, userView } from "../testing.ts";
import { answering, hangingUp, holding, refusing, silent } from "../upstreams/testing.ts";

const profile = `/v1/users/${alice}/profile`;

test("a profile has all parts, requested for the user of the session", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  const answer = await app.inject({ url: `${profile}?ticket_id=${ticketId}`, headers: player.headers });
  const as_of = expect.stringMatching(/^\d{4}-.*Z$/);
  expect([answer.statusCode, answer.json()]).toEqual([
    200,
    {
      user_id: alice,
      account: { status: "ok", value: userView(alice), as_of },
      entitlements: { status: "ok", value: expect.objectContaining({ user_id: alice }), as_of },
      points: { status: "ok", value: balanceView, as_of },
      matchmaking: { status: "ok", value: { ticket_id: ticketId, status: "QUEUED" }, as_of },
    },
  ]);
  expect(t.services.matchmaking.received.map(({ path }) => path)).toEqual([`/v1/matchmaking/tickets/${ticketId}`]);
  expect(t.services.points.received.map(({ path }) => path)).toEqual([`/v1/points/users/${alice}/balance`]);
});

test("a profile has the services' bytes: no number is rounded, and no body is null", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  const body = '{ "balance": 9223372036854775807, "held": 9007199254740993, "rate": 1.10, "name": "\\u0041" }';
  const saying = (text: string) => (response: ServerResponse) =>
    void response.setHeader("content-type", "application/json").end(text);
  for (const service of [t.services.points, t.services.entitlement]) service.setBehaviour(saying(body));
  t.services.matchmaking.setBehaviour((response) => void response.writeHead(204).end());
  const ask = async () => (await app.inject({ url: `${profile}?ticket_id=${ticketId}`, headers: player.headers })).body;
  const first = await ask();
  expect(first).toContain(`"points":{"status":"ok","value":${body},"as_of":"`);
  expect(first).toContain(`"entitlements":{"status":"ok","value":${body},"as_of":"`);
  expect(JSON.parse(first).matchmaking).toMatchObject({ status: "ok", value: null });
  t.services.entitlement.setBehaviour(hangingUp);
  expect(await ask()).toContain(`"entitlements":{"status":"stale","value":${body},"as_of":"`);
});

test("a missing service is absent, a refusal is a failed part", async () => {
  await using t = await setup();
  const [app, player] = [await t.process({ without: ["points"] }), await t.logIn(alice)];
  expect((await app.inject({ url: profile, headers: player.headers })).json()).toMatchObject({
    account: { status: "ok" },
    points: { status: "absent" },
  });
  t.services.matchmaking.setBehaviour(refusing(404, "ticket-not-found"));
  expect((await app.inject({ url: `${profile}?ticket_id=${ticketId}`, headers: player.headers })).json()).toMatchObject(
    {
      matchmaking: { status: "failed", code: "ticket-not-found", detail: "not like this" },
    },
  );
  for (const query of ["ticket_id=..%2F..%2Fadmin", "ticket_id=a&ticket_id=b", "ticket_id=t_1", `ticket=${ticketId}`])
    expect((await app.inject({ url: `${profile}?${query}`, headers: player.headers })).statusCode).toBe(400);
});

test("failing parts are marked with their code, and the others are served in time", async () => {
  await using t = await setup();
  // Only the profile timeout ends the silent call; the others have time enough on a busy machine.
  const [app, player] = [await t.process({ profileTimeoutMs: 5_000 }), await t.logIn(alice)];
  t.services.entitlement.setBehaviour(silent);
  t.services.points.setBehaviour(hangingUp);
  t.services.matchmaking.setBehaviour(
    (response) => void response.setHeader("content-type", "application/json").end("<p>"),
  );
  const answer = await app.inject({
    url: `${profile}?ticket_id=${ticketId}`,
    headers: { ...player.headers, "accept-language": "ja" },
  });
  expect([answer.statusCode, answer.json()]).toMatchObject([
    200,
    {
      account: { status: "ok" },
      entitlements: { status: "failed", code: "ENTITLEMENT_TIMEOUT", detail: expect.stringMatching(/[ぁ-ん]/) },
      points: { status: "failed", code: "POINTS_BAD_GATEWAY" },
      matchmaking: { status: "failed", code: "MATCHMAKING_BAD_GATEWAY" },
    },
  ]);
});

test("while entitlement is down, a user gets their own last entitlements as stale", async () => {
  await using t = await setup();
  const app = await t.process({ without: ["points", "matchmaking"] });
  const [player, stranger] = [await t.logIn(alice), await t.logIn(bob)];
  const ask = async () => (await app.inject({ url: profile, headers: player.headers })).json().entitlements;
  const fresh = await ask();
  await t.services.entitlement[Symbol.asyncDispose]();
  expect(await ask()).toEqual({ ...fresh, status: "stale" });
  const others = await app.inject({ url: `/v1/users/${bob}/profile`, headers: stranger.headers });
  expect(others.json().entitlements).toMatchObject({ status: "failed", code: "ENTITLEMENT_BAD_GATEWAY" });
});

test("a refusal is not replaced by a stale response", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  await app.inject({ url: profile, headers: player.headers });
  t.services.entitlement.setBehaviour(refusing(403, "forbidden"));
  expect((await app.inject({ url: profile, headers: player.headers })).json().entitlements).toMatchObject({
    status: "failed",
    code: "forbidden",
  });
});

test("a profile without any part gets 503 with the codes of its parts", async () => {
  await using t = await setup();
  const [app, player] = [await t.process({ without: ["points", "matchmaking"] }), await t.logIn(alice)];
  for (const service of [t.services.account, t.services.entitlement]) service.setBehaviour(hangingUp);
  const answer = await app.inject({ url: profile, headers: player.headers });
  expect([answer.statusCode, answer.headers["retry-after"]]).toEqual([503, "1"]);
  expect(answer.json()).toMatchObject({
    code: "profile-unavailable",
    detail: expect.stringContaining("ACCOUNT_BAD_GATEWAY"),
  });
});

test("a hanging service slows no other route", async () => {
  await using t = await setup();
  const app = await t.process({ concurrency: 8, queueMax: 8 });
  const player = await t.logIn(alice);
  using hung = holding(answering({}));
  t.services.entitlement.setBehaviour(hung.behaviour);
  const codes: unknown[] = [];
  const crowd = Array.from({ length: 100 }, async () => {
    const answer = await app.inject({ url: `/v1/users/${alice}/entitlements`, headers: player.headers });
    codes.push(answer.json().code);
  });
  const { received } = t.services.entitlement;
  await until(
    "eight hang, eight wait, and the others were refused",
    () => codes.length === 84 && received.length === 8,
  );
  expect(codes).toEqual(codes.map(() => "ENTITLEMENT_UNAVAILABLE"));
  const quick = await Promise.all(
    Array.from({ length: 16 }, () => app.inject({ url: "/v1/me", headers: player.headers })),
  );
  expect(quick.map(({ statusCode }) => statusCode)).toEqual(quick.map(() => 200));
  expect([codes.length, received.length]).toEqual([84, 8]); // All this while it hung.
  hung.release();
  await Promise.all(crowd);
  expect(codes.slice(84)).toEqual(Array(16).fill(undefined));
  expect(received).toHaveLength(16);
});

test("while the breaker is open profiles mark the part at once, until the service is back", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  // What is no JSON is not asked for again.
  t.services.points.setBehaviour((response) => void response.setHeader("content-type", "application/json").end("<p>"));
  const ask = async () => (await app.inject({ url: profile, headers: player.headers })).json().points;
  for (let n = 0; n < 5; n++) expect(await ask()).toMatchObject({ code: "POINTS_BAD_GATEWAY" });
  const { received } = t.services.points;
  const askUnheard = async () => {
    const before = received.length;
    return { ...(await ask()), received: received.length - before };
  };
  // Again, where this machine stood still until the service was due to be tried anew.
  await expect.poll(askUnheard).toMatchObject({ status: "failed", code: "POINTS_UNAVAILABLE", received: 0 });
  t.services.points.setBehaviour(answering(balanceView));
  await expect.poll(ask, { interval: 200 }).toMatchObject({ status: "ok" });
});

test("a client picks parts and fields, and only their services are called", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  const body = '{"user_id":"u","balance":9223372036854775807,"held":1.10,"version":3}';
  t.services.points.setBehaviour((response) => void response.setHeader("content-type", "application/json").end(body));
  const ask = async (fields: string) => app.inject({ url: `/v1/me/profile?fields=${fields}`, headers: player.headers });
  const { body: picked } = await ask("points.balance,points.held,account.display_name");
  expect(picked).toContain('"points":{"status":"ok","value":{"balance":9223372036854775807,"held":1.10},"as_of":"');
  expect(JSON.parse(picked)).toMatchObject({ user_id: alice, account: { value: { display_name: "Somebody" } } });
  expect(Object.keys(JSON.parse(picked)).sort()).toEqual(["account", "points", "user_id"]);
  expect(JSON.parse(picked).account.value).toEqual({ display_name: "Somebody" });
  // A part that is also named whole is whole.
  expect((await ask("points.balance,points,points.held")).body).toContain(`"value":${body}`);
  const { entitlement, matchmaking, notification } = t.services;
  for (const service of [entitlement, matchmaking, notification]) expect(service.received).toEqual([]);
});

test("an unknown part or field is refused by its name, and no service is called", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  for (const [fields, named] of [
    ["friends", "friends"],
    ["account.password", "account.password"],
    ["account,", ""],
    ["constructor", "constructor"],
    ["account.display_name.x", "account.display_name.x"],
  ] as const) {
    const refused = await app.inject({ url: `/v1/me/profile?fields=${fields}`, headers: player.headers });
    expect([fields, refused.statusCode, refused.json().errors?.[0].field]).toEqual([fields, 400, "query.fields"]);
    expect(refused.json().errors[0].detail).toContain(`has ${named}`);
  }
  for (const service of Object.values(t.services)) expect(service.received).toEqual([]);
});

test("without a ticket ID, a profile has the current ticket", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  const answer = await app.inject({ url: profile, headers: player.headers });
  expect(answer.json().matchmaking).toMatchObject({ status: "ok", value: { ticket_id: ticketId } });
  expect(t.services.matchmaking.received.map(({ path }) => path)).toEqual(["/v1/matchmaking/tickets/current"]);
});

test("the other players of the caller's match are named, with one read of the ticket and one of the names", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  const ask = async () =>
    (await app.inject({ url: "/v1/me/profile?fields=matchmaking,players", headers: player.headers })).json();
  expect((await ask()).players).toMatchObject({ status: "ok", value: null });
  expect(t.services.account.received).toEqual([]);

  const peers = [bob, fixedId(3)].map((user_id, n) => ({ user_id, team: n + 2, party_size: 1 }));
  t.services.matchmaking.setBehaviour(answering({ ticket_id: ticketId, status: "MATCHED", peers }));
  t.services.account.setBehaviour(answering({ users: [{ user_id: bob, display_name: "Bob" }] }));
  expect((await ask()).players.value).toEqual({ players: [{ ...peers[0], display_name: "Bob" }, peers[1]] });
  expect(t.services.account.received.map(({ path }) => path)).toEqual([`/display-names?user_ids=${bob},${fixedId(3)}`]);
  expect(await bearerOf("account", t.services.account.received[0] as never)).toMatchObject({ kind: "service" });
  expect(t.services.matchmaking.received).toHaveLength(2);
});

test("the inbox of a profile is in the language of the request", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  const one = { notification_id: fixedId(1), event_type: "MatchMade", occurred_at: "2026-01-08T07:10:00Z" };
  t.services.notification.setBehaviour(answering({ notifications: [{ ...one, text: { en: "yes", ja: "はい" } }] }));
  const headers = { ...player.headers, "accept-language": "ja" };
  const answer = await app.inject({ url: "/v1/me/profile?fields=inbox", headers });
  expect(answer.json().inbox.value).toEqual({ notifications: [{ ...one, text: "はい" }] });
  expect(answer.headers["content-language"]).toBe("ja");
});
