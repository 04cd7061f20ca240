import { randomBytes } from "node:crypto";
import { until } from "@todoke/kernel/testing";
import { sharedRedis } from "@todoke/redis/testing";
import { describe, expect, test } from "vitest";
import { duels, expectConsistent, readStored, ticketIds, ticketRequest } from "../queue/testing.ts";
import { openTicketIds } from "../queue/ticket-id.ts";
import { createHarness, unkeyedId } from "../testing.ts";

const redis = sharedRedis();
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

describe.each(["postgres", "redis"] as const)("ticket routes, with the queue in %s", (store) => {
  const openHarness = () => createHarness(store === "redis" ? { redisUrl: redis.url } : {});

  test("a matched ticket has the match, the peers and the session, for both players", async () => {
    await using t = await openHarness();
    const { ticketOf, show, call, queue } = await t.process();
    const [a, b] = [await ticketOf("u_1", "duel", { attributes: { map: "ice" } }), await ticketOf("u_2", "duel")];
    const fields = {
      ticket_id: a,
      mode: "duel",
      party_size: 1,
      attributes: { map: "ice" },
      joined_at: time,
      expires_at: time,
    };
    expect(await show("u_1", a)).toEqual({ ...fields, status: "QUEUED" });
    await queue.matchFifo("duel", duels);
    await until("the match is recorded", async () => (await show("u_1", a)).status === "MATCHED");
    const mine = await show("u_1", a);
    expect(mine).toEqual({
      ...fields,
      status: "MATCHED",
      match_id: expect.any(String),
      matched_at: time,
      team: 1,
      peers: [{ user_id: "u_2", team: 2, party_size: 1 }],
      session: duels.session,
    });
    expect(await show("u_2", b)).toMatchObject({
      match_id: mine.match_id,
      team: 2,
      peers: [{ user_id: "u_1", team: 1 }],
    });
    const late = await call("DELETE", `/tickets/${a}`, { as: "u_1" });
    expect([late.statusCode, late.json().code]).toEqual([409, "ticket-matched"]);
    expect((await call("POST", `/tickets/${a}:heartbeat`, { as: "u_1" })).json()).toEqual(mine);
    await expectConsistent(t.db);
  });

  test("a user's tickets are listed in pages, the last joined first, each once although tickets end meanwhile", async () => {
    await using t = await openHarness();
    const { ticketOf, call, queue } = await t.process();
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) {
      ids.unshift(await ticketOf("u_1", "duel"));
      await call("DELETE", `/tickets/${ids[0]}`, { as: "u_1" });
    }
    const ranked = await ticketOf("u_1", "ranked", { attributes: { skill: 1 } });
    const duel = await ticketOf("u_1", "duel");
    await ticketOf("u_2", "ranked", { attributes: { skill: 1 } });
    const list = async (query: string, as = "u_1") => (await call("GET", `/tickets?${query}`, { as })).json();

    const first = await list("limit=1");
    expect(first.tickets).toMatchObject([{ ticket_id: duel, status: "QUEUED" }]);
    await call("DELETE", `/tickets/${ranked}`, { as: "u_1" });
    const seen: string[] = [duel];
    for (let cursor = first.next_cursor; cursor !== undefined; ) {
      const next = await list(`limit=1&cursor=${cursor}`);
      seen.push(...next.tickets.map((each: { ticket_id: string }) => each.ticket_id));
      cursor = next.next_cursor;
    }
    expect(seen).toEqual([duel, ranked, ...ids]);
    expect(await list("", "u_3")).toEqual({ tickets: [] });

    await queue.join(ticketRequest({ userId: "u_4" }));
    await queue.matchFifo("duel", duels);
    await until("the match is recorded", async () => (await list("limit=1")).tickets[0].status === "MATCHED");
    expect((await list("limit=2")).tickets).toMatchObject([
      { ticket_id: duel, status: "MATCHED", peers: [{ user_id: "u_4" }] },
      { ticket_id: ranked, status: "CANCELLED" },
    ]);
    for (const query of ["limit=51", "cursor=nonsense"])
      expect((await call("GET", `/tickets?${query}`, { as: "u_1" })).statusCode).toBe(400);
  });

  test("the current ticket is the open one, else that of the latest match, else there is none", async () => {
    await using t = await openHarness();
    const { ticketOf, call, queue } = await t.process();
    const current = async () => {
      const response = await call("GET", "/tickets/current", { as: "u_1" });
      return response.statusCode === 204 ? undefined : response.json();
    };
    expect(await current()).toBeUndefined();
    const cancelled = await ticketOf("u_1", "duel");
    expect(await current()).toMatchObject({ ticket_id: cancelled, status: "QUEUED" });
    await call("DELETE", `/tickets/${cancelled}`, { as: "u_1" });
    expect(await current()).toBeUndefined();
    const matched = await ticketOf("u_1", "duel");
    await ticketOf("u_2", "duel");
    await queue.matchFifo("duel", duels);
    await until("the match is recorded", async () => (await current()).status === "MATCHED");
    const ranked = await ticketOf("u_1", "ranked", { attributes: { skill: 1 } });
    expect(await current()).toMatchObject({ ticket_id: ranked, status: "QUEUED" });
    await call("DELETE", `/tickets/${ranked}`, { as: "u_1" });
    expect(await current()).toMatchObject({ ticket_id: matched, status: "MATCHED", peers: [{ user_id: "u_2" }] });
  });

  test("a repeated cancel returns the same response, and the user can join again", async () => {
    await using t = await openHarness();
    const { ticketOf, call, queue, show } = await t.process();
    const id = await ticketOf("u_1", "duel");
    await ticketOf("u_2", "duel");
    const cancel = () => call("DELETE", `/tickets/${id}`, { as: "u_1" });
    const first = await cancel();
    expect([first.statusCode, first.json()]).toEqual([
      200,
      expect.objectContaining({ status: "CANCELLED", ended_at: time }),
    ]);
    expect((await cancel()).json()).toEqual(first.json());
    expect(await show("u_1", id)).toEqual(first.json());
    expect((await queue.matchFifo("duel", duels)).made).toBe(0);
    const again = await ticketOf("u_1", "duel");
    expect(again).not.toBe(id);
    expect(await show("u_1", again)).toMatchObject({ status: "QUEUED" });
    expect((await readStored(t.db)).ended("CANCELLED")).toEqual([id]);
  });

  test("an expired ticket is QUEUED until the sweep and EXPIRED afterwards", async () => {
    await using t = await openHarness();
    const { queue, show, call } = await t.process();
    const { ticketId } = await queue.join(ticketRequest({ userId: "u_1", ticketMs: 30 }));
    await until("the ticket is expired", async () => (await queue.find(ticketId))?.status === "EXPIRED");
    expect((await show("u_1", ticketId)).status).toBe("QUEUED");
    await queue.sweep("duel");
    await until("the end is recorded", async () => (await show("u_1", ticketId)).reason === "timeout");
    const cancelled = await call("DELETE", `/tickets/${ticketId}`, { as: "u_1" });
    expect([cancelled.statusCode, cancelled.json()]).toEqual([200, await show("u_1", ticketId)]);
    expect((await readStored(t.db)).events).toHaveLength(1);
  });

  test("a heartbeat of an expired ticket that was not swept yet ends it with reason timeout", async () => {
    await using t = await openHarness();
    const { queue, call } = await t.process();
    const { ticketId } = await queue.join(ticketRequest({ userId: "u_1", ticketMs: 30 }));
    await until("the ticket is expired", async () => (await queue.find(ticketId))?.status === "EXPIRED");
    const { reason } = (await call("POST", `/tickets/${ticketId}:heartbeat`, { as: "u_1" })).json();
    expect(reason).toBe("timeout");
    expect(await queue.sweep("duel")).toMatchObject({ expired: 0, waiting: 0 });
  });

  test("a heartbeat moves heartbeat_before; without one the ticket is EXPIRED", async () => {
    await using t = await openHarness();
    const { ticketOf, show, call, queue } = await t.process();
    const id = await ticketOf("u_1", "ranked", { attributes: { skill: 1 } });
    const before = await show("u_1", id);
    expect(before).toMatchObject({ status: "QUEUED", heartbeat_before: time });
    const later = async () => {
      const answer = await call("POST", `/tickets/${id}:heartbeat`, { as: "u_1" });
      expect(answer.statusCode).toBe(200);
      return answer.json().heartbeat_before > before.heartbeat_before;
    };
    await until("the deadline is later", later);
    const { ticketId } = await queue.join(
      ticketRequest({ mode: "ranked", userId: "u_2", attributes: { skill: 1 }, heartbeatMs: 30 }),
    );
    await until("the ticket is expired", async () => (await queue.find(ticketId))?.status === "EXPIRED");
    await queue.sweep("ranked");
    await until("the end is recorded", async () => (await show("u_2", ticketId)).reason === "heartbeat");
    expect((await call("POST", `/tickets/${ticketId}:heartbeat`, { as: "u_2" })).json().status).toBe("EXPIRED");
  });

  test("a ticket of another user is 404 ticket-not-found", async () => {
    await using t = await openHarness();
    const { ticketOf, call, show } = await t.process();
    const id = await ticketOf("u_1", "duel");
    for (const id_ of [id, ticketIds.create("duel", "u_1")])
      for (const [method, path] of [
        ["GET", `/tickets/${id_}`],
        ["DELETE", `/tickets/${id_}`],
        ["POST", `/tickets/${id_}:heartbeat`],
      ] as const) {
        const answer = await call(method, path, { as: "u_2" });
        expect([path, answer.statusCode, answer.json().code]).toEqual([path, 404, "ticket-not-found"]);
      }
    expect(await show("u_1", id)).toMatchObject({ status: "QUEUED" });
  });

  test("a lost ticket is 404 ticket-lost, and EXPIRED after a cancel or heartbeat", async () => {
    await using t = await openHarness();
    const { show, call, join } = await t.process();
    for (const [method, act] of [
      ["DELETE", ""],
      ["POST", ":heartbeat"],
    ] as const) {
      const gone = ticketIds.create("duel", "u_1");
      const shown = await call("GET", `/tickets/${gone}`, { as: "u_1" });
      expect([shown.statusCode, shown.json().code]).toEqual([404, "ticket-lost"]);
      const lost = { ticket_id: gone, mode: "duel", status: "EXPIRED", reason: "lost" };
      expect((await call(method, `/tickets/${gone}${act}`, { as: "u_1" })).json()).toEqual(lost);
      expect(await show("u_1", gone)).toEqual(lost);
    }
    expect((await join("u_1", "duel")).statusCode).toBe(201);
  });

  test("a made-up ID is 404 ticket-not-found and leaves no row", async () => {
    await using t = await openHarness();
    const { call } = await t.process();
    for (const id of [unkeyedId("duel", "u_1"), openTicketIds([randomBytes(32)]).create("duel", "u_1")])
      for (const [method, path] of [
        ["GET", `/tickets/${id}`],
        ["DELETE", `/tickets/${id}`],
        ["POST", `/tickets/${id}:heartbeat`],
      ] as const) {
        const answer = await call(method, path, { as: "u_1" });
        expect([path, answer.statusCode, answer.json().code]).toEqual([path, 404, "ticket-not-found"]);
      }
    expect((await readStored(t.db)).ends).toEqual([]);
  });

  test("reads write nothing, for expired and lost tickets either", async () => {
    await using t = await openHarness();
    const { queue, call, ticketOf } = await t.process();
    await ticketOf("u_2", "duel");
    const { ticketId } = await queue.join(ticketRequest({ userId: "u_1", ticketMs: 30 }));
    await until("the ticket is expired", async () => (await queue.find(ticketId))?.status === "EXPIRED");
    for (const path of [`/tickets/${ticketId}`, `/tickets/${ticketIds.create("duel", "u_1")}`, "/queues"])
      await call("GET", path, { as: "u_1" });
    expect((await call("GET", "/queues/duel/stats", { as: "u_1" })).json()).toMatchObject({ waiting: 1 });
    expect((await readStored(t.db)).ends).toEqual([]);
    // In Redis an end is recorded later, so the proof is that the sweep still finds the ticket.
    expect(await queue.sweep("duel")).toMatchObject({ expired: 1, waiting: 1 });
  });

  test("a ticket of a mode that has left the rules expires", async () => {
    await using t = await openHarness();
    const { queue, show } = await t.process();
    const { ticketId } = await queue.join(ticketRequest({ userId: "u_1", ticketMs: 100 }));
    t.changeRules((modes) => void modes.delete("duel"));
    await until("the ticket is expired", async () => (await queue.find(ticketId))?.status === "EXPIRED");
    await queue.sweep("duel");
    await until("it has expired", async () => (await show("u_1", ticketId)).reason === "timeout");
    expect((await readStored(t.db)).ended("EXPIRED")).toEqual([ticketId]);
  });
});

test("a malformed ticket ID is rejected with 400", async () => {
  await using t = await createHarness();
  const { call } = await t.process();
  for (const id of [
    "t_1",
    "duel.",
    `duel.${"a".repeat(29)}`,
    `DUEL.${"a".repeat(28)}`,
    `${"a".repeat(33)}.${"a".repeat(28)}`,
  ]) {
    const answer = await call("GET", `/tickets/${id}`, { as: "u_1" });
    expect([id, answer.statusCode, answer.json().errors?.[0].field]).toEqual([id, 400, "path.ticket_id"]);
  }
});

test("every route admits exactly the callers that it names", async () => {
  await using t = await createHarness();
  const { app, call, ticketOf } = await t.process();
  const id = await ticketOf("u_1", "duel");
  const players: readonly string[] = ["user:u_1"];
  const readers = [...players, "key:shop"];
  const backends: readonly string[] = ["key:game"];
  const routes = [
    ["GET", "/queues", readers],
    ["GET", "/queues/duel/stats", readers],
    ["POST", "/queues/duel/tickets", players],
    ["POST", "/users/u_1/queues/duel/tickets", backends],
    ["GET", "/tickets", players],
    ["GET", "/tickets/current", players],
    ["GET", `/tickets/${id}`, players],
    ["POST", `/tickets/${id}:heartbeat`, players],
    ["DELETE", `/tickets/${id}`, players],
  ] as const;
  for (const [method, path, who] of routes)
    for (const as of ["user:u_1", "key:shop", "key:game", "service:gateway-bff", ""]) {
      const { statusCode } = await call(method, path, { ...(as && { as }), headers: { "x-user-id": "u_1" } });
      const found = statusCode === 401 || statusCode === 403 ? statusCode : "in";
      const expected = who.includes(as) ? "in" : as ? 403 : 401;
      expect([method, path, as, found]).toEqual([method, path, as, expected]);
    }
  const { paths } = (await app.inject({ url: "/openapi.json" })).json();
  // Those for the gateway and for staff have tests of their own.
  const others = Object.entries<object>(paths).filter(([path]) => path.startsWith("/v1/matchmaking/"));
  expect(others.flatMap(([, operations]) => Object.keys(operations))).toHaveLength(routes.length);
});
