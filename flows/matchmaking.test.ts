/** Matchmaking through the gateway and every service behind it, with tickets in PostgreSQL and in Redis. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEngine } from "@todoke/engines";
import { until } from "@todoke/kernel/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startAll } from "./all-services.ts";
import { createPlayerClient } from "./player-client.ts";

const rules = (more = "") => `
modes:
  duel: { session: { server: "eu-1" } }
  brief: { ticket_seconds: 5 }
${more}`;

async function openSetup(store: "postgres" | "redis") {
  await using parts = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "todoke-rules-"));
  parts.defer(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "rules.yaml");
  writeFileSync(path, rules());
  const redis = store === "redis" ? parts.use(await startEngine("redis")) : undefined;
  const settings = { MATCHMAKING_RULES: path, ...(redis && { MATCHMAKING_REDIS_URL: redis.url }) };
  const all = parts.use(await startAll({ settings }));
  const resources = parts.move();
  return {
    /** A new player. */
    async player() {
      const user = await all.createUser(randomUUID());
      return { userId: user.userId, ...createPlayerClient(all.gateways[0] ?? "", await all.openSession(user)) };
    },
    writeRules: (more: string) => writeFileSync(path, rules(more)),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

describe.each(["postgres", "redis"] as const)("tickets in %s", (store) => {
  let setup: Awaited<ReturnType<typeof openSetup>>;
  beforeAll(async () => {
    setup = await openSetup(store);
  });
  afterAll(() => setup?.[Symbol.asyncDispose]());

  test("two players are matched, see each other, and are notified once, on the stream too", async () => {
    const [alice, bob] = [await setup.player(), await setup.player()];
    await using live = await alice.openStream();
    const [hers, his] = [(await alice.join("duel")).body.ticket_id, (await bob.join("duel")).body.ticket_id];
    const shown = () => Promise.all([alice.getTicket(hers), bob.getTicket(his)]);
    await until("both are matched", async () => (await shown()).every(({ status }) => status === "MATCHED"));
    const [one, other] = await shown();
    expect(one.match_id).toBe(other.match_id);
    expect(one.peers).toEqual([{ user_id: bob.userId, team: other.team, party_size: 1 }]);
    expect(other.peers).toEqual([{ user_id: alice.userId, team: one.team, party_size: 1 }]);
    expect([one.session, other.session]).toEqual([{ server: "eu-1" }, { server: "eu-1" }]);

    for (const [player, { ticket_id, match_id, team }] of [
      [alice, one],
      [bob, other],
    ]) {
      await until("they are notified", async () => (await player.notifications("MatchMade")).length > 0);
      expect(await player.notifications("MatchMade")).toEqual([{ ticket_id, match_id, team, mode: "duel" }]);
    }
    await until("the stream has it", () => live.notifications("MatchMade").length > 0);
    expect(live.notifications("MatchMade")).toEqual([expect.stringContaining(one.match_id)]);

    const { body: profile } = await alice.call("GET", `/users/${alice.userId}/profile?ticket_id=${hers}`);
    expect(profile.matchmaking).toMatchObject({ status: "ok", value: { match_id: one.match_id } });
    const late = await alice.cancel(hers);
    expect([late.status, late.body.code]).toEqual([409, "ticket-matched"]);
  });

  test("a repeated join returns the same bytes; after a cancel a new join makes a new ticket", async () => {
    const player = await setup.player();
    const first = await player.join("duel", "key-1");
    const again = await player.join("duel", "key-1");
    expect([first.status, again.status, again.isReplayed]).toEqual([201, 201, true]);
    expect(again.text).toBe(first.text);
    const id = first.body.ticket_id;
    const cancelled = await player.cancel(id);
    expect([cancelled.status, cancelled.body.status]).toEqual([200, "CANCELLED"]);
    expect((await player.cancel(id)).text).toBe(cancelled.text);
    expect(await player.getTicket(id)).toEqual(cancelled.body);
    const next = await player.join("duel");
    expect([next.status, next.body.ticket_id === id]).toEqual([201, false]);
    await player.cancel(next.body.ticket_id);
  });

  test("a ticket is 404 for every other player", async () => {
    const [owner, stranger] = [await setup.player(), await setup.player()];
    const id = (await owner.join("duel")).body.ticket_id;
    const path = `/matchmaking/tickets/${id}`;
    for (const [method, at] of [
      ["GET", path],
      ["DELETE", path],
      ["POST", `${path}:heartbeat`],
    ] as const) {
      const { status, body } = await stranger.call(method, at);
      expect([method, status, body.code]).toEqual([method, 404, "ticket-not-found"]);
    }
    expect((await owner.getTicket(id)).status).toBe("QUEUED");
    await owner.cancel(id);
  });

  test("a ticket without a match expires, and its player is notified once, on the stream too", async () => {
    const player = await setup.player();
    await using live = await player.openStream();
    const id = (await player.join("brief")).body.ticket_id;
    await until("it has expired", async () => (await player.getTicket(id)).status === "EXPIRED");
    await until("they are notified", async () => (await player.notifications("TicketExpired")).length > 0);
    expect(await player.notifications("TicketExpired")).toMatchObject([{ ticket_id: id, mode: "brief" }]);
    await until("the stream has it", () => live.notifications("TicketExpired").length > 0);
    expect(live.notifications("TicketExpired")).toHaveLength(1);
    expect(await player.getTicket(id)).toMatchObject({ status: "EXPIRED", reason: "timeout" });
  });

  test("a mode added to the rules file works without a restart; an invalid file changes nothing", async () => {
    const [alice, bob] = [await setup.player(), await setup.player()];
    const none = await alice.join("arena");
    expect([none.status, none.body.code]).toEqual([404, "unknown-mode"]);
    setup.writeRules("  arena: { session: { server: arena-7 } }\n");
    let hers = none;
    await until("there is an arena", async () => {
      hers = await alice.join("arena");
      return hers.status !== 404;
    });
    setup.writeRules("  arena: { teams: none }\n");
    const his = await bob.join("arena");
    const shown = () => Promise.all([alice.getTicket(hers.body.ticket_id), bob.getTicket(his.body.ticket_id)]);
    await until("both are matched", async () => (await shown()).every(({ status }) => status === "MATCHED"));
    expect((await shown()).map(({ session }) => session)).toEqual([{ server: "arena-7" }, { server: "arena-7" }]);
  });
});
