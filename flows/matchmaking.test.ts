/**
 * Players find each other, through the gateway and every service behind it, with tickets in PostgreSQL and in Redis: both join,
 * both see the same match, each is told of it once, in the inbox and live, and nobody sees or takes back another's ticket.
 */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEngine } from "@todoke/engines";
import { until } from "@todoke/kernel/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startAll } from "./all-services.ts";
import { untilAnswered } from "./player-client.ts";

interface Body {
  readonly payload?: object;
  readonly key?: string;
}

/** A player's client, as a game has one. */
function clientOf(gateway: string, token: string) {
  async function call(method: string, path: string, { payload, key = randomUUID() }: Body = {}) {
    const answer = await untilAnswered(`${gateway}/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(payload && { "content-type": "application/json", "idempotency-key": key }),
      },
      ...(payload && { body: JSON.stringify(payload) }),
    });
    const text = await answer.text();
    const isReplayed = answer.headers.get("idempotency-replayed") === "true";
    return { status: answer.status, isReplayed, text, body: JSON.parse(text) };
  }
  return {
    call,
    join: (mode: string, more: Pick<Body, "key"> = {}) =>
      call("POST", `/matchmaking/queues/${mode}/tickets`, { payload: {}, ...more }),
    show: async (id: string) => (await call("GET", `/matchmaking/tickets/${id}`)).body,
    cancel: (id: string) => call("DELETE", `/matchmaking/tickets/${id}`),
    /** What the inbox says of events of a type. */
    told: async (type: string) => {
      const { body } = await call("GET", "/inbox");
      const of = body.notifications.filter((each: { event_type: string }) => each.event_type === type);
      return of.map(({ data }: { data: unknown }) => data);
    },
    /** What comes live from now on. */
    async follow() {
      const stopping = new AbortController();
      const headers = { authorization: `Bearer ${token}` };
      const answer = await untilAnswered(`${gateway}/v1/inbox/stream`, { headers, signal: stopping.signal });
      let heard = "";
      const reading = (async () => {
        for await (const text of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) heard += text;
      })().catch(() => {});
      return {
        of: (type: string) => heard.split("\n").filter((line) => line.startsWith("data:") && line.includes(type)),
        async [Symbol.asyncDispose]() {
          stopping.abort();
          await reading;
        },
      };
    },
  };
}

const rules = (more = "") => `
modes:
  duel: { session: { server: "eu-1" } }
  brief: { ticket_seconds: 5 }
${more}`;

async function openSite(store: "postgres" | "redis") {
  await using parts = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "todoke-rules-"));
  parts.defer(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "rules.yaml");
  writeFileSync(path, rules());
  const redis = store === "redis" ? parts.use(await startEngine("redis")) : undefined;
  const settings = { MATCHMAKING_RULES: path, ...(redis && { MATCHMAKING_REDIS_URL: redis.url }) };
  const all = parts.use(await startAll({ settings }));
  const kept = parts.move();
  return {
    /** Somebody whom nobody else has met. */
    async player() {
      const user = await all.makeUser(randomUUID());
      return { userId: user.userId, ...clientOf(all.gateways[0] ?? "", await all.openSession(user)) };
    },
    writeRules: (more: string) => writeFileSync(path, rules(more)),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

describe.each(["postgres", "redis"] as const)("tickets in %s", (store) => {
  let setup: Awaited<ReturnType<typeof openSite>>;
  beforeAll(async () => {
    setup = await openSite(store);
  });
  afterAll(() => setup?.[Symbol.asyncDispose]());

  test("two players join, see the same match and each other, and are each told of it once, live too", async () => {
    const [alice, bob] = [await setup.player(), await setup.player()];
    await using live = await alice.follow();
    const [hers, his] = [(await alice.join("duel")).body.ticket_id, (await bob.join("duel")).body.ticket_id];
    const shown = () => Promise.all([alice.show(hers), bob.show(his)]);
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
      await until("they are told", async () => (await player.told("MatchMade")).length > 0);
      expect(await player.told("MatchMade")).toEqual([{ ticket_id, match_id, team, mode: "duel" }]);
    }
    await until("she hears of it live", () => live.of("MatchMade").length > 0);
    expect(live.of("MatchMade")).toEqual([expect.stringContaining(one.match_id)]);

    const { body: profile } = await alice.call("GET", `/users/${alice.userId}/profile?ticket_id=${hers}`);
    expect(profile.matchmaking).toMatchObject({ status: "ok", value: { match_id: one.match_id } });
    const late = await alice.cancel(hers);
    expect([late.status, late.body.code]).toEqual([409, "ticket-matched"]);
  });

  test("a wish that is sent again is the same ticket, to the byte; what is taken back is, and the same call joins anew", async () => {
    const player = await setup.player();
    const first = await player.join("duel", { key: "key-1" });
    const again = await player.join("duel", { key: "key-1" });
    expect([first.status, again.status, again.isReplayed]).toEqual([201, 201, true]);
    expect(again.text).toBe(first.text);
    const id = first.body.ticket_id;
    const cancelled = await player.cancel(id);
    expect([cancelled.status, cancelled.body.status]).toEqual([200, "CANCELLED"]);
    expect((await player.cancel(id)).text).toBe(cancelled.text);
    expect(await player.show(id)).toEqual(cancelled.body);
    const next = await player.join("duel");
    expect([next.status, next.body.ticket_id === id]).toEqual([201, false]);
    await player.cancel(next.body.ticket_id);
  });

  test("a ticket is its owner's: to everybody else there is none", async () => {
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
    expect((await owner.show(id)).status).toBe("QUEUED");
    await owner.cancel(id);
  });

  test("a ticket that nobody was found for ends as EXPIRED, and its player is told once, live too", async () => {
    const player = await setup.player();
    await using live = await player.follow();
    const id = (await player.join("brief")).body.ticket_id;
    await until("its time is up", async () => (await player.show(id)).status === "EXPIRED");
    await until("they are told", async () => (await player.told("TicketExpired")).length > 0);
    expect(await player.told("TicketExpired")).toMatchObject([{ ticket_id: id, mode: "brief" }]);
    await until("they hear of it live", () => live.of("TicketExpired").length > 0);
    expect(live.of("TicketExpired")).toHaveLength(1);
    expect(await player.show(id)).toMatchObject({ status: "EXPIRED", reason: "timeout" });
  });

  test("a mode that is written into the rules file is played without a restart; a bad file changes nothing", async () => {
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
    const shown = () => Promise.all([alice.show(hers.body.ticket_id), bob.show(his.body.ticket_id)]);
    await until("both are matched", async () => (await shown()).every(({ status }) => status === "MATCHED"));
    expect((await shown()).map(({ session }) => session)).toEqual([{ server: "arena-7" }, { server: "arena-7" }]);
  });
});
