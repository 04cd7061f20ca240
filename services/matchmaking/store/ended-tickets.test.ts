import { fixedId } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { selectLastOpponents, selectWaits } from "./ended-tickets.ts";
import { insertLost } from "./ends.ts";
import { selectRecordedTickets } from "./recorded-tickets.ts";
import { cancelled, expired, match, openTestDatabase, record, ticket } from "./testing.ts";

test("the waits of a mode are from the last thousand tickets matched within the last hour", async () => {
  await using t = await openTestDatabase();
  expect(await selectWaits(t.db, "duel")).toEqual({ matched: 0 });
  await record(t.db, ...Array.from({ length: 50 }, (_, n) => match(n, [`u_${n}a`, `u_${n}b`], (n + 1) * 1_000)));
  await record(t.db, cancelled("u_x"));
  expect(await selectWaits(t.db, "duel")).toEqual({ matched: 100, p50Ms: 25_500, p90Ms: 45_100, p99Ms: 50_000 });
  expect(await selectWaits(t.db, "ranked")).toEqual({ matched: 0 });
  await t.db.query(`update ticket_ends set joined_at = joined_at - interval '1 hour', ended_at = ended_at - interval '1 hour'
                     where waited > interval '10 s'`);
  expect(await selectWaits(t.db, "duel")).toMatchObject({ matched: 20, p50Ms: 5_500 });
  await record(t.db, ...Array.from({ length: 500 }, (_, n) => match(100 + n, [`v_${n}a`, `v_${n}b`], 60_000)));
  const waits = await selectWaits(t.db, "duel");
  expect(waits).toMatchObject({ matched: 1_000, p50Ms: 60_000 });
});

test("last opponents are all users of the user's matches in the mode within the time", async () => {
  await using t = await openTestDatabase();
  await record(t.db, match(1, ["u_1", "u_2", "u_3"]), match(2, ["u_4", "u_5"]));
  const met = async (userId: string, withinMs = 3_600_000, mode = "duel") =>
    [...(await selectLastOpponents(t.db, { mode, userId, withinMs }))].sort();
  expect(await met("u_1")).toEqual(["u_2", "u_3"]);
  expect(await met("u_5")).toEqual(["u_4"]);
  expect(await met("u_6")).toEqual([]);
  expect(await met("u_1", 3_600_000, "ranked")).toEqual([]);
  await t.db.query(
    `update ticket_ends set ended_at = ended_at - interval '1 hour', joined_at = joined_at - interval '1 hour'
                     where match_id = $1`,
    [fixedId(1)],
  );
  expect(await met("u_1")).toEqual([]);
});

test("cancelled tickets do not hide last opponents", async () => {
  await using t = await openTestDatabase();
  await record(t.db, match(1, ["u_1", "u_2"]));
  const since = Array.from({ length: 150 }, (_, n) => ({
    kind: "cancelled" as const,
    ticket: ticket("u_1", { ticketId: `duel.c${n}` }),
    endedAt: Date.now(),
  }));
  await record(t.db, ...since);
  expect(await selectLastOpponents(t.db, { mode: "duel", userId: "u_1", withinMs: 3_600_000 })).toEqual(["u_2"]);
});

test("recorded tickets for the export are without lost ones", async () => {
  await using t = await openTestDatabase();
  await record(t.db, cancelled("u_1"), expired("u_2"));
  await insertLost(t.db, { ticketId: "duel.u_3", mode: "duel", userId: "u_3" });
  const page = await selectRecordedTickets(t.db, { mode: "duel", withinHours: 1, after: "", limit: 10 });
  expect(page.map((row) => row.user_id)).toEqual(["u_1", "u_2"]);
});
