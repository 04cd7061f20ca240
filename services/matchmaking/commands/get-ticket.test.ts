import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { duels, ticketIds, ticketRequest } from "../queue/testing.ts";
import { match, record, ticket } from "../store/testing.ts";
import { createHarness, unkeyedId } from "../testing.ts";

test("a ticket that was cancelled as lost is in no match, though a recorder still held one of it", async () => {
  await using t = await createHarness();
  const { show, call } = await t.process();
  const cancel = async (as: string, id: string) => (await call("DELETE", `/tickets/${id}`, { as })).json();
  const [mine, theirs] = [ticketIds.create("duel", "u_1"), ticketIds.create("duel", "u_2")];
  const { match: made } = match(1, ["u_1", "u_2"]);
  const tickets = [ticket("u_1", { ticketId: mine }), ticket("u_2", { ticketId: theirs })];
  const seats = tickets.map((each, place) => ({ ticket: each, team: place + 1 }));

  expect(await cancel("u_1", mine)).toMatchObject({ status: "EXPIRED", reason: "lost" });
  expect(await record(t.db, { kind: "match", match: { ...made, seats } })).toMatchObject([{ kind: "void" }]);
  expect(await show("u_1", mine)).toEqual({ ticket_id: mine, mode: "duel", status: "EXPIRED", reason: "lost" });
  expect(await show("u_2", theirs)).toMatchObject({ code: "ticket-lost" });
});

test("a stored ticket is shown to its user by an id from before the proof had a key, and to nobody else", async () => {
  await using t = await createHarness();
  const { show, call } = await t.process();
  const [open, ended] = [unkeyedId("duel", "u_1"), unkeyedId("duel", "u_2")];
  await t.db.query(
    `insert into tickets (ticket_id, mode, user_id, party_size, attributes, avoid, joined_at, expires_at, alive_until)
     values ($1, 'duel', 'u_1', 1, '{}', '{}', now(), now() + interval '1 h', now() + interval '1 h')`,
    [open],
  );
  await record(t.db, { kind: "cancelled", ticket: ticket("u_2", { ticketId: ended }), endedAt: Date.now() });
  for (const [id, owner, status] of [
    [open, "u_1", "QUEUED"],
    [ended, "u_2", "CANCELLED"],
  ] as const) {
    expect(await show(owner, id)).toMatchObject({ ticket_id: id, status });
    for (const [method, path] of [
      ["GET", `/tickets/${id}`],
      ["DELETE", `/tickets/${id}`],
      ["POST", `/tickets/${id}:heartbeat`],
    ] as const)
      expect((await call(method, path, { as: "u_3" })).json().code).toBe("ticket-not-found");
  }
  expect((await call("DELETE", `/tickets/${open}`, { as: "u_1" })).json()).toMatchObject({ status: "CANCELLED" });
});

test("a heartbeat for a ticket that expires while its match is being committed is answered with the match", async () => {
  await using t = await createHarness();
  const { show, call, queue } = await t.process();
  await queue.join(ticketRequest({ userId: "u_2" }));
  // While somebody holds the outbox, the match is written and cannot commit.
  const holder = await t.db.connect();
  using _ = { [Symbol.dispose]: () => holder.release(true) };
  await holder.query("begin; lock table outbox_events in exclusive mode");
  // Nothing lies between the two but a few statements, which may take their time.
  const { ticketId } = await queue.join(ticketRequest({ userId: "u_1", ticketMs: 6_000 }));
  const making = queue.matchInOrder("duel", duels);
  await until("its time is up", async () => (await queue.find(ticketId))?.status === "EXPIRED");
  let answer: { readonly status: string } | undefined;
  // To show it neither waits nor writes: nothing of the match is recorded yet.
  expect(await show("u_1", ticketId)).toMatchObject({ status: "QUEUED" });
  const beat = call("POST", `/tickets/${ticketId}:heartbeat`, { as: "u_1" });
  const asked = beat.then((shown) => (answer = shown.json() as { readonly status: string }));
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
