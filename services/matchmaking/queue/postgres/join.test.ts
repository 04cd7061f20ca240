import type { Db } from "@todoke/kernel/db";
import { expect, test } from "vitest";
import type { JoinRow } from "../../store/queue/join-tickets.ts";
import { openTestDatabase } from "../../store/testing.ts";
import { ticketIds, ticketRequest } from "../testing.ts";
import { createBatchedJoin } from "./join.ts";

/** The rows of every join statement of this pool. */
function recordBatches(db: Db): JoinRow[][] {
  const batches: JoinRow[][] = [];
  db.on("connect", (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    Object.assign(client, {
      query(...args: unknown[]) {
        const [{ name, values }] = args as [{ name?: string; values?: unknown[] }];
        if (name === "join tickets") batches.push(JSON.parse(String(values?.[0])));
        return query(...args);
      },
    });
  });
  return batches;
}

test("joins of one user in one mode never share a statement; joins of other users and modes do", async () => {
  await using t = await openTestDatabase();
  const db = t.open();
  const batches = recordBatches(db);
  const join = createBatchedJoin({ db, ids: ticketIds, endIfExpired: () => expect.fail("no ticket expires here") });
  const results = await Promise.all([
    join(ticketRequest({ userId: "u_1" })),
    join(ticketRequest({ userId: "u_1" })),
    join(ticketRequest({ userId: "u_1", mode: "ranked" })),
    join(ticketRequest({ userId: "u_2" })),
  ]);
  expect(results.map(({ kind }) => kind)).toEqual(["new", "open", "new", "new"]);
  expect(results[1]?.ticketId).toBe(results[0]?.ticketId);
  const users = batches.map((rows) => rows.map((row) => `${row.user_id} ${row.mode}`));
  expect(users).toEqual([["u_1 duel", "u_1 ranked", "u_2 duel"], ["u_1 duel"]]);
});

test("requests with one key never share a statement", async () => {
  await using t = await openTestDatabase();
  const db = t.open();
  const batches = recordBatches(db);
  const join = createBatchedJoin({ db, ids: ticketIds, endIfExpired: () => expect.fail("no ticket expires here") });
  const request = ticketRequest({ userId: "u_1" });
  // Another user, so that only the key is the same.
  const results = await Promise.allSettled([join(request), join({ ...request, userId: "u_2" })]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
  expect(batches.map((rows) => rows.map((row) => row.user_id))).toEqual([["u_1"], ["u_2"]]);
});
