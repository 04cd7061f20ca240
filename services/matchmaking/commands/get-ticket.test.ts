import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { duels, ticketIds, ticketRequest } from "../queue/testing.ts";
import { match, record, ticket } from "../store/testing.ts";
import { createHarness, unkeyedId } from "../testing.ts";
import { getTicket } from "./get-ticket.ts";

test("a ticket that was cancelled as lost makes a match that a recorder still held void", async () => {
  await using t = await createHarness();
  const { show, call } = await t.process();
  const cancel = async (as: string, id: string) => (await call("DELETE", `/tickets/${id}`, { as })).json();
  const [mine, theirs] = [ticketIds.create("duel", "u_1"), ticketIds.create("duel", "u_2")];
  const { match: made } = match(1, ["u_1", "u_2"]);
  const tickets = [ticket("u_1", { ticketId: mine }), ticket("u_2", { ticketId: theirs })];
  const seats = tickets.map((each, index) => ({ ticket: each, team: index + 1 }));

  expect(await cancel("u_1", mine)).toMatchObject({ status: "EXPIRED", reason: "lost" });
  expect(await record(t.db, { kind: "match", match: { ...made, seats } })).toMatchObject([{ kind: "void" }]);
  expect(await show("u_1", mine)).toEqual({ ticket_id: mine, mode: "duel", status: "EXPIRED", reason: "lost" });
  expect(await show("u_2", theirs)).toMatchObject({ code: "ticket-lost" });
});

test("a stored ticket with an ID of an earlier version is visible to its owner only", async () => {
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

test("a heartbeat of a ticket that expires during the commit of its match returns the match", async () => {
  await using t = await createHarness();
  const { show, call, queue } = await t.process();
  await queue.join(ticketRequest({ userId: "u_2" }));
  // The lock on the outbox keeps the match from committing.
  const holder = await t.db.connect();
  using _ = { [Symbol.dispose]: () => holder.release(true) };
  await holder.query("begin; lock table outbox_events in exclusive mode");
  // Long enough for the few statements until the match is written, on a slow machine too.
  const { ticketId } = await queue.join(ticketRequest({ userId: "u_1", ticketMs: 6_000 }));
  const making = queue.matchFifo("duel", duels);
  await until("the ticket is expired", async () => (await queue.find(ticketId))?.status === "EXPIRED");
  let answer: { readonly status: string } | undefined;
  // A read neither waits nor writes; nothing of the match is recorded yet.
  expect(await show("u_1", ticketId)).toMatchObject({ status: "QUEUED" });
  const response = call("POST", `/tickets/${ticketId}:heartbeat`, { as: "u_1" });
  const heartbeat = response.then((shown) => (answer = shown.json() as { readonly status: string }));
  await until("the heartbeat waits for the match, or has returned", async () => {
    const { rows } = await t.db.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows.length === 2 || answer !== undefined;
  });
  await holder.query("commit");
  expect((await heartbeat).status).toBe("MATCHED");
  expect(await making).toEqual({ made: 1 });
});

test("a read of a ticket that ends between its two lookups returns the end", async () => {
  await using t = await createHarness();
  const queue = t.openQueue();
  const { ticketId } = await queue.join(ticketRequest({ userId: "u_1" }));
  const ending = {
    ...queue,
    async find(id: string) {
      await queue.cancel(id);
      return queue.find(id);
    },
  };
  const get = getTicket({ db: t.db, queue: ending, ids: ticketIds, estimateWait: async () => undefined });
  expect(await get({ ticketId, userId: "u_1" })).toMatchObject({ ticket_id: ticketId, status: "CANCELLED" });
});
