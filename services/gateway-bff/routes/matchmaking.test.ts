import { expect, test } from "vitest";
import { alice, bearerOf, setup, ticketId } from "../testing.ts";
import { answering, hangingUp, refusing } from "../upstreams/testing.ts";

const queue = "/v1/matchmaking/queues/duel";
const ticket = `/v1/matchmaking/tickets/${ticketId}`;

test("join, read, heartbeat and cancel are forwarded for the player", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  const key = { "idempotency-key": "key-1" };
  const ticketRequest = { party_size: 1, attributes: { skill: 1500, regions: ["eu"] } };
  const joined = { ticket_id: ticketId, status: "QUEUED", expires_at: "2026-01-08T07:10:00.123Z" };
  t.services.matchmaking.setBehaviour(answering(joined, { status: 201, headers: { "idempotency-replayed": "true" } }));
  const calls = [
    { method: "POST", url: `${queue}/tickets`, payload: ticketRequest, more: key },
    { method: "GET", url: ticket },
    { method: "POST", url: `${ticket}:heartbeat` },
    { method: "DELETE", url: ticket },
    { method: "GET", url: "/v1/matchmaking/queues" },
    { method: "GET", url: `${queue}/stats` },
  ] as const;
  for (const call of calls) {
    const { method, url } = call;
    const headers = { ...player.headers, ...("more" in call && call.more) };
    const answer = await app.inject({ method, url, headers, ...("payload" in call && { payload: call.payload }) });
    expect([answer.statusCode, answer.body]).toEqual([201, JSON.stringify(joined)]);
    expect(answer.headers["idempotency-replayed"]).toBe("true");
  }
  const { received } = t.services.matchmaking;
  expect(received.map(({ method, path }) => [method, path])).toEqual(calls.map(({ method, url }) => [method, url]));
  expect(received[0]).toMatchObject({ body: JSON.stringify(ticketRequest), headers: key });
  for (const one of received) {
    expect(await bearerOf("matchmaking", one)).toMatchObject({ name: `user:${alice}` });
    await expect(bearerOf("account", one)).rejects.toMatchObject({ status: 401 });
  }
});

test("refusals of matchmaking are passed on, and malformed tickets are not forwarded", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  const ask = (method: "GET" | "POST" | "DELETE", url: string, payload?: object) =>
    app.inject({
      method,
      url,
      headers: { ...player.headers, "idempotency-key": "key-1" },
      ...(payload && { payload }),
    });
  t.services.matchmaking.setBehaviour(refusing(409, "ticket-matched"));
  const late = await ask("DELETE", ticket);
  expect([late.statusCode, late.json().code]).toEqual([409, "ticket-matched"]);
  t.services.matchmaking.received.length = 0;
  const bad = [
    await ask("GET", "/v1/matchmaking/tickets/t_1"),
    await ask("DELETE", "/v1/matchmaking/tickets/..%2Fqueues"),
    await ask("POST", "/v1/matchmaking/tickets/duel.short:heartbeat"),
    await ask("GET", "/v1/matchmaking/queues/DUEL/stats"),
    await ask("POST", `${queue}/tickets`, { party_size: 0 }),
    await ask("POST", `${queue}/tickets`, { user_id: alice }),
    await ask("POST", `${queue}/tickets`, { attributes: [] }),
  ];
  expect(bad.map(({ statusCode }) => statusCode)).toEqual(bad.map(() => 400));
  expect(t.services.matchmaking.received).toEqual([]);
});

test("a cancel with a lost response is retried, a join is not", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  const { received } = t.services.matchmaking;
  t.services.matchmaking.setBehaviour((response, one) => {
    if (received.length === 1) hangingUp(response, one);
    else answering({ ticket_id: ticketId, status: "CANCELLED" })(response, one);
  });
  const cancelled = await app.inject({ method: "DELETE", url: ticket, headers: player.headers });
  expect([cancelled.statusCode, received.length]).toEqual([200, 2]);
  received.length = 0;
  const headers = { ...player.headers, "idempotency-key": "key-1" };
  const joined = await app.inject({ method: "POST", url: `${queue}/tickets`, headers, payload: {} });
  expect([joined.statusCode, joined.json().code, received.length]).toEqual([502, "MATCHMAKING_BAD_GATEWAY", 1]);
});
