import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { duels, wish } from "../queue/testing.ts";
import { match, record, ticket } from "../store/testing.ts";
import { setup } from "../testing.ts";
import { newTicketId } from "../ticket-id.ts";

test("whoever was told that the ticket is lost is in no match of it, though a recorder held one in its hands", async () => {
  await using t = await setup();
  const { show } = await t.process();
  const [mine, theirs] = [newTicketId("duel", "u_1"), newTicketId("duel", "u_2")];
  const { match: made } = match(1, ["u_1", "u_2"]);
  const tickets = [ticket("u_1", { ticketId: mine }), ticket("u_2", { ticketId: theirs })];
  const seats = tickets.map((each, place) => ({ ticket: each, team: place + 1 }));

  expect(await show("u_1", mine)).toMatchObject({ status: "EXPIRED", reason: "lost" });
  expect(await record(t.db, { kind: "match", match: { ...made, seats } })).toMatchObject([{ kind: "void" }]);
  for (const [user, id] of [
    ["u_1", mine],
    ["u_2", theirs],
  ] as const)
    expect(await show(user, id)).toEqual({ ticket_id: id, mode: "duel", status: "EXPIRED", reason: "lost" });
});

test("a ticket whose time runs out while its match is being committed is told as MATCHED, and never as EXPIRED before", async () => {
  await using t = await setup();
  const { show, queue } = await t.process();
  await queue.join(wish({ userId: "u_2" }));
  // While somebody holds the outbox, the match is written and cannot commit.
  const holder = await t.db.connect();
  using _ = { [Symbol.dispose]: () => holder.release(true) };
  await holder.query("begin; lock table outbox_events in exclusive mode");
  // Nothing lies between the two but a few statements, which may take their time.
  const { ticketId } = await queue.join(wish({ userId: "u_1", ticketMs: 6_000 }));
  const making = queue.matchInOrder("duel", duels);
  await until("its time is up", async () => (await queue.find(ticketId))?.status === "EXPIRED");
  let answer: { readonly status: string } | undefined;
  const asked = show("u_1", ticketId).then((shown) => (answer = shown));
  await until("whoever asks waits for the match, or is answered", async () => {
    const { rows } = await t.db.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows.length === 2 || answer !== undefined;
  });
  await holder.query("commit");
  expect((await asked).status).toBe("MATCHED");
  expect(await making).toEqual({ made: 1 });
});
