/**
 * A player who is suspended while waiting keeps nobody waiting: their ticket ends, those who join later are matched with each
 * other, and whoever is reinstated joins again. Through the gateway and every service behind it.
 */
import { startEngine } from "@todoke/engines";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { startAll } from "./all-services.ts";
import { clientOf } from "./player-client.ts";

type All = Awaited<ReturnType<typeof startAll>>;
type Client = ReturnType<typeof clientOf>;

/** Somebody who is logged in, again if need be. */
async function enter(all: All, name: string) {
  const user = await all.makeUser(name);
  const logIn = async () => clientOf(all.gateways[0] ?? "", await all.openSession(user));
  return { ...user, logIn, client: await logIn() };
}

async function isMatched(client: Client, ticket: string) {
  await until("they are matched", async () => (await client.ticket(ticket)).status === "MATCHED");
  return (await client.ticket(ticket)).peers.map((peer: { user_id: string }) => peer.user_id);
}

test.each(["postgres", "redis"] as const)(
  "a player who waits and is suspended is matched with nobody, and joins again once reinstated (queue in %s)",
  async (store) => {
    await using parts = new AsyncDisposableStack();
    const redis = store === "redis" ? parts.use(await startEngine("redis")) : undefined;
    const all = parts.use(await startAll({ ...(redis && { settings: { MATCHMAKING_REDIS_URL: redis.url } }) }));
    const [admin, cheat] = [await enter(all, "admin"), await enter(all, "cheat")];
    const [alice, bob] = [await enter(all, "alice"), await enter(all, "bob")];
    const act = async (name: string) => {
      const path = `/v1/admin/users/${cheat.userId}:${name}`;
      expect((await admin.client.call("POST", path, { reason: "cheating" })).status).toBe(200);
    };

    const ticket = await cheat.client.join();
    expect(await cheat.client.ticket(ticket)).toMatchObject({ status: "QUEUED" });
    await act("suspend");
    const ended = () => all.db.query(`select status from matchmaking.ticket_ends where ticket_id = $1`, [ticket]);
    await until("the ticket has ended", async () => (await ended()).rowCount === 1);
    const [hers, his] = [await alice.client.join(), await bob.client.join()];
    expect(await isMatched(alice.client, hers)).toEqual([bob.userId]);
    expect(await isMatched(bob.client, his)).toEqual([alice.userId]);

    await act("reinstate");
    const again = await cheat.logIn();
    expect(await again.ticket(ticket)).toMatchObject({ status: "CANCELLED" });
    const next = await again.join();
    expect(next).not.toBe(ticket);
    await alice.client.join();
    expect(await isMatched(again, next)).toEqual([alice.userId]);
    // Account tells of the suspension; the ticket's end needs no telling of its own.
    const told = (await again.told()).map(({ event_type }: { event_type: string }) => event_type);
    expect(told).not.toContain("TicketExpired");
  },
);
