import type { Db } from "@todoke/kernel/db";
import { openOutbox } from "@todoke/kernel/outbox";
import { expect, test } from "vitest";
import { openPostgresQueue } from "../../queue/postgres/index.ts";
import { duels, mode, ticketRequest } from "../../queue/testing.ts";
import { lastOpponentsSql, ticketEndSql, waitsSql } from "../ended-tickets.ts";
import { recordedEndsSql } from "../ends.ts";
import { openTestDatabase } from "../testing.ts";
import { joinSql } from "./join-tickets.ts";
import { betweenSql, newestSql, oldestSql } from "./snapshot.ts";
import {
  deleteTicketsSql,
  heartbeatSql,
  lockExpiredSql,
  lockOldestSql,
  lockTicketsSql,
  lockUserTicketsSql,
  queueStatusSql,
} from "./tickets.ts";

/** Tickets of a mode, which wait for an hour yet, or have waited in vain. */
const tickets = (n: number, of = mode, left = "1 h") => `
  insert into tickets (ticket_id, mode, user_id, party_size, attributes, avoid, joined_at, expires_at, alive_until)
  select '${of}.' || i, '${of}', 'w' || i, 1, '{"skill": 1}', '{}',
         now() + i * interval '1 ms' - interval '10 min', now() + interval '${left}', now() + interval '${left}'
    from generate_series(1, ${n}) i`;

const ends = (n: number) => `
  insert into ticket_ends (ticket_id, mode, user_id, status, party_size, attributes, joined_at, expires_at, ended_at)
  select 'duel.e' || i, 'duel', 'e' || i, 'CANCELLED', 1, '{}', now(), now(), now() from generate_series(1, ${n}) i`;

/** Tens of thousands of rows take a busy machine a while. */
const patient = { statementTimeoutMs: 120_000 };

/** The plan that a cached statement has, whatever its parameters turn out to be. */
async function genericPlan(db: Db, sql: string): Promise<string> {
  const { rows } = await db.query(`explain (generic_plan) ${sql}`);
  return rows.map((row) => row["QUERY PLAN"]).join("\n");
}

/** By which index each statement finds its rows, and by nothing else. */
const probes: readonly (readonly [string, readonly string[]])[] = [
  [joinSql, ["idempotency_keys_pkey", "ticket_of_a_user_once_in_a_mode"]],
  [recordedEndsSql, ["ticket_ends_pkey"]],
  [ticketEndSql, ["matches_pkey", "ticket_end_of_a_user_once_in_a_match", "ticket_ends_pkey"]],
  [lastOpponentsSql, ["ticket_end_of_a_user_once_in_a_match", "ticket_ends_met"]],
  [waitsSql, ["ticket_ends_waits"]],
  [lockOldestSql, ["tickets_waiting"]],
  [lockTicketsSql, ["tickets_pkey"]],
  [lockUserTicketsSql, ["ticket_of_a_user_once_in_a_mode"]],
  [lockExpiredSql, ["tickets_by_end"]],
  [deleteTicketsSql, ["tickets_pkey"]],
  [heartbeatSql, ["tickets_pkey"]],
  [oldestSql, ["tickets_waiting"]],
  [newestSql, ["tickets_waiting"]],
  [betweenSql, ["tickets_waiting"]],
  [queueStatusSql, ["tickets_by_end", "tickets_waiting"]],
];

test("every statement keeps to its index on an empty table, on a full one and on stale statistics", async () => {
  await using t = await openTestDatabase();
  const db = t.open(patient);
  const waiting = [tickets(20_000), ends(20_000), "analyze", tickets(20_000, "ranked"), "delete from tickets"];
  const over = ["vacuum analyze tickets", tickets(20_000, mode, "-1 s"), "analyze", tickets(20_000, "ranked")];
  const states = ["", "analyze", ...waiting, ...over];
  for (const state of states) {
    await db.query(state);
    for (const [sql, indexes] of probes) {
      const plan = await genericPlan(db, sql);
      const told = `after "${state.trim().slice(0, 40)}"\n${sql}\n${plan}`;
      expect(plan, told).not.toMatch(/Seq Scan on (tickets|ticket_ends|matches|idempotency_keys)|Bitmap/);
      const used = [...plan.matchAll(/Index (?:Only )?Scan (?:Backward )?using (\w+)/g)].map((found) => found[1]);
      expect([...new Set(used)].sort(), told).toEqual([...indexes].sort());
    }
    // In the order of waiting, as the index has it: a sort would read all who wait.
    for (const sql of [lockOldestSql, oldestSql, newestSql, lockExpiredSql, waitsSql])
      expect(await genericPlan(db, sql)).not.toMatch(/Sort/);
  }
});

/** What it takes when the machine does nothing else: the best tenth of the samples. */
const undisturbed = (times: readonly number[]) =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length / 10)] ?? Number.NaN;

test("a match beside a hundred thousand who wait takes at most twice as long as beside a thousand", async () => {
  await using few = await openTestDatabase();
  await using many = await openTestDatabase();
  await few.db.query(tickets(1_000));
  await many.open(patient).query(tickets(100_000));
  const times = { few: [] as number[], many: [] as number[] };
  const queues = {
    few: openPostgresQueue({ db: few.db, outbox: openOutbox() }),
    many: openPostgresQueue({ db: many.db, outbox: openOutbox() }),
  };
  const ratio = () => undisturbed(times.many) / undisturbed(times.few);
  // By turns, so that whatever else this machine is doing meets both. What it does can only make a match slower, so more
  // samples come nearer to what is asked for: on a busy machine it takes more of them.
  for (let n = 0; n < 60 || (n < 240 && ratio() >= 2); n++) {
    for (const which of ["few", "many"] as const) {
      const queue = queues[which];
      const startedAt = performance.now();
      expect(await queue.matchInOrder(mode, { ...duels, matchesMax: 5 })).toEqual({ made: 5 });
      times[which].push(performance.now() - startedAt);
      await Promise.all(Array.from({ length: 10 }, () => queue.join(ticketRequest())));
    }
  }
  const [ofFew, ofMany] = [undisturbed(times.few), undisturbed(times.many)];
  const told = `${ofFew.toFixed(2)} ms beside a thousand, ${ofMany.toFixed(2)} ms beside a hundred thousand`;
  expect(ratio(), told).toBeLessThan(2);
});
