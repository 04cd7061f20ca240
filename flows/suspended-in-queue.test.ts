/** A suspension ends the player's queued ticket, through the gateway and every service behind it. */
import { startEngine } from "@todoke/engines";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { startAll } from "./all-services.ts";
import { createPlayerClient } from "./player-client.ts";

type All = Awaited<ReturnType<typeof startAll>>;
type Client = ReturnType<typeof createPlayerClient>;

/** Creates a user with a session. */
async function logInAs(all: All, name: string) {
  const user = await all.createUser(name);
  const logIn = async () => createPlayerClient(all.gateways[0] ?? "", await all.openSession(user));
  return { ...user, logIn, client: await logIn() };
}

async function waitForPeers(client: Client, ticket: string) {
  await until("they are matched", async () => (await client.getTicket(ticket)).status === "MATCHED");
  return (await client.getTicket(ticket)).peers.map((peer: { user_id: string }) => peer.user_id);
}

test.each(["postgres", "redis"] as const)(
  "a suspended player's ticket ends; after reinstatement they join again (queue in %s)",
  async (store) => {
    await using parts = new AsyncDisposableStack();
    const redis = store === "redis" ? parts.use(await startEngine("redis")) : undefined;
    const all = parts.use(await startAll({ ...(redis && { settings: { MATCHMAKING_REDIS_URL: redis.url } }) }));
    const [admin, cheat] = [await logInAs(all, "admin"), await logInAs(all, "cheat")];
    const [alice, bob] = [await logInAs(all, "alice"), await logInAs(all, "bob")];
    const act = async (name: string) => {
      const path = `/admin/users/${cheat.userId}:${name}`;
      expect((await admin.client.call("POST", path, { reason: "cheating" })).status).toBe(200);
    };

    const ticket = (await cheat.client.join("duel")).body.ticket_id;
    expect(await cheat.client.getTicket(ticket)).toMatchObject({ status: "QUEUED" });
    await act("suspend");
    const ended = () => all.db.query(`select status from matchmaking.ticket_ends where ticket_id = $1`, [ticket]);
    await until("the ticket has ended", async () => (await ended()).rowCount === 1);
    const hers = (await alice.client.join("duel")).body.ticket_id;
    const his = (await bob.client.join("duel")).body.ticket_id;
    expect(await waitForPeers(alice.client, hers)).toEqual([bob.userId]);
    expect(await waitForPeers(bob.client, his)).toEqual([alice.userId]);

    await act("reinstate");
    const again = await cheat.logIn();
    expect(await again.getTicket(ticket)).toMatchObject({ status: "CANCELLED" });
    const next = (await again.join("duel")).body.ticket_id;
    expect(next).not.toBe(ticket);
    await alice.client.join("duel");
    expect(await waitForPeers(again, next)).toEqual([alice.userId]);
    // Account notifies of the suspension, so the ticket's end needs no notification.
    expect(await again.notifications("TicketExpired")).toEqual([]);
  },
);
