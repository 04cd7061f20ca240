import { keyColumns } from "@todoke/kernel/idempotency";
import { expect, test } from "vitest";
import { ticketIds, ticketRequest } from "../../queue/testing.ts";
import { openTestDatabase } from "../testing.ts";
import { type JoinRow, joinTickets } from "./join-tickets.ts";

function joinRow(userId: string): JoinRow {
  const { key, mode, partySize, attributes, avoid, ticketMs } = ticketRequest({ userId });
  return {
    ...keyColumns(key),
    ticket_id: ticketIds.create(mode, userId),
    mode,
    user_id: userId,
    party_size: partySize,
    attributes,
    avoid,
    ticket_ms: ticketMs,
    heartbeat_ms: null,
  };
}

test("every request of a batch is stored with its key, new or with an open ticket", async () => {
  await using t = await openTestDatabase();
  await joinTickets(t.db, [joinRow("u_2"), joinRow("u_4")]);
  const batch = ["u_1", "u_2", "u_3", "u_4", "u_5"].map(joinRow);
  const first = await joinTickets(t.db, batch);
  expect(first).toMatchObject([201, 200, 201, 200, 201].map((status) => ({ result: "first", status })));
  // The tickets are gone: only the stored keys can return the same results.
  await t.db.query("delete from tickets");
  const again = await joinTickets(t.db, batch);
  expect(again).toEqual(first.map((result) => ({ ...result, result: "replayed", replayed: true })));
});
