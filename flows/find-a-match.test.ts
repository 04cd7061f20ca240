/**
 * Two players find each other, through the gateway and every service behind it: both join, both see the same match, and each
 * is told of it once, in the inbox and live.
 */
import { randomUUID } from "node:crypto";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { startAll } from "./all-services.ts";

/** A player's client, as a game has one. */
function clientOf(gateway: string, token: string) {
  async function call(method: string, path: string, payload?: object) {
    const answer = await fetch(`${gateway}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(payload && { "content-type": "application/json", "idempotency-key": randomUUID() }),
      },
      ...(payload && { body: JSON.stringify(payload) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: whatever the gateway says.
    return { status: answer.status, body: (await answer.json()) as any };
  }
  return {
    call,
    join: async () => (await call("POST", "/v1/matchmaking/queues/duel/tickets", {})).body.ticket_id as string,
    ticket: async (id: string) => (await call("GET", `/v1/matchmaking/tickets/${id}`)).body,
    told: async () => (await call("GET", "/v1/inbox")).body.notifications,
    /** What comes live from now on. */
    async follow() {
      const stopping = new AbortController();
      const answer = await fetch(`${gateway}/v1/inbox/stream`, {
        headers: { authorization: `Bearer ${token}` },
        signal: stopping.signal,
      });
      let heard = "";
      const reading = (async () => {
        for await (const text of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) heard += text;
      })().catch(() => {});
      return {
        matches: () => heard.split("\n").filter((line) => line.startsWith("data:") && line.includes("MatchMade")),
        async [Symbol.asyncDispose]() {
          stopping.abort();
          await reading;
        },
      };
    },
  };
}

test("two players join, see the same match, and are each told of it once, live too", async () => {
  await using all = await startAll();
  const gateway = all.gateways[0] ?? "";
  const players = await Promise.all(
    ["alice", "bob"].map(async (name) => {
      const user = await all.makeUser(name);
      return { user, client: clientOf(gateway, await all.openSession(user)) };
    }),
  );
  const [alice, bob] = players;
  if (!alice || !bob) expect.fail("nobody is there");
  await using live = await alice.client.follow();
  const [hers, his] = [await alice.client.join(), await bob.client.join()];
  await until("both are matched", async () => {
    const shown = [await alice.client.ticket(hers), await bob.client.ticket(his)];
    return shown.every(({ status }) => status === "MATCHED");
  });
  const [one, other] = [await alice.client.ticket(hers), await bob.client.ticket(his)];
  expect(one.match_id).toBe(other.match_id);
  expect(one.peers).toEqual([{ user_id: bob.user.userId, team: other.team, party_size: 1 }]);
  expect(other.peers).toEqual([{ user_id: alice.user.userId, team: one.team, party_size: 1 }]);

  const matchOf = (notifications: readonly { event_type: string; data?: unknown }[]) =>
    notifications.filter(({ event_type }) => event_type === "MatchMade").map(({ data }) => data);
  for (const [{ client }, ticket] of [
    [alice, one],
    [bob, other],
  ] as const) {
    await until("they are told", async () => matchOf(await client.told()).length > 0);
    const { ticket_id, match_id, team } = ticket;
    expect(matchOf(await client.told())).toEqual([{ ticket_id, match_id, team, mode: "duel" }]);
  }
  await until("she hears of it live", () => live.matches().length > 0);
  expect(live.matches()).toEqual([expect.stringContaining(one.match_id)]);

  // Nobody but its owner sees a ticket, and what is matched cannot be taken back.
  expect((await bob.client.call("GET", `/v1/matchmaking/tickets/${hers}`)).body.code).toBe("ticket-not-found");
  expect((await alice.client.call("DELETE", `/v1/matchmaking/tickets/${hers}`)).body.code).toBe("ticket-matched");
  const { body: profile } = await alice.client.call("GET", `/v1/users/${alice.user.userId}/profile?ticket_id=${hers}`);
  expect(profile.matchmaking).toMatchObject({ status: "ok", value: { match_id: one.match_id } });
}, 60_000);

test("a player who has had enough takes the ticket back, and joins again by the same call", async () => {
  await using all = await startAll();
  const client = clientOf(all.gateways[0] ?? "", await all.openSession(await all.makeUser("alice")));
  const id = await client.join();
  const cancel = () => client.call("DELETE", `/v1/matchmaking/tickets/${id}`);
  const first = await cancel();
  expect([first.status, first.body.status]).toEqual([200, "CANCELLED"]);
  expect(await cancel()).toEqual(first);
  expect(await client.join()).not.toBe(id);
}, 60_000);
