import { openOutbox } from "@todoke/kernel/outbox";
import { genericPlan } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { openPostgresQueue } from "../../queue/postgres/index.ts";
import { duels, mode, ticketRequest } from "../../queue/testing.ts";
import { lastMatchesSql, lastOpponentsSql, ticketEndSql, userTicketEndsSql, waitsSql } from "../ended-tickets.ts";
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
  userTicketsSql,
} from "./tickets.ts";

/** Inserts tickets that live for an hour, or are expired. */
const tickets = (n: number, of = mode, left = "1 h") => `
  insert into tickets (ticket_id, mode, user_id, party_size, attributes, avoid, joined_at, expires_at, alive_until)
  select '${of}.' || i, '${of}', 'w' || i, 1, '{"skill": 1}', '{}',
         now() + i * interval '1 ms' - interval '10 min', now() + interval '${left}', now() + interval '${left}'
    from generate_series(1, ${n}) i`;

const ends = (n: number) => `
  insert into ticket_ends (ticket_id, mode, user_id, status, party_size, attributes, joined_at, expires_at, ended_at)
  select 'duel.e' || i, 'duel', 'e' || i, 'CANCELLED', 1, '{}', now(), now(), now() from generate_series(1, ${n}) i`;

/** Tens of thousands of rows take a while on a busy machine. */
const longTimeout = { statementTimeoutMs: 120_000 };

/** The only indexes that each statement may use. */
const probes: readonly (readonly [string, readonly string[]])[] = [
  [joinSql, ["idempotency_keys_pkey", "ticket_of_a_user_once_in_a_mode"]],
  [recordedEndsSql, ["ticket_ends_pkey"]],
  [ticketEndSql, ["matches_pkey", "ticket_end_of_a_user_once_in_a_match", "ticket_ends_pkey"]],
  [lastOpponentsSql, ["ticket_end_of_a_user_once_in_a_match", "ticket_ends_met"]],
  [lastMatchesSql, ["matches_pkey", "ticket_end_of_a_user_once_in_a_match", "ticket_ends_met"]],
  [userTicketEndsSql, ["matches_pkey", "ticket_end_of_a_user_once_in_a_match", "ticket_ends_joined"]],
  [userTicketsSql, ["ticket_of_a_user_once_in_a_mode"]],
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

test("every statement uses its index on empty and full tables and with stale statistics", async () => {
  await using t = await openTestDatabase();
  const db = t.open(longTimeout);
  const waiting = [tickets(20_000), ends(20_000), "analyze", tickets(20_000, "ranked"), "delete from tickets"];
  const over = ["vacuum analyze tickets", tickets(20_000, mode, "-1 s"), "analyze", tickets(20_000, "ranked")];
  const states = ["", "analyze", ...waiting, ...over];
  for (const state of states) {
    await db.query(state);
    for (const [sql, indexes] of probes) {
      const plan = await genericPlan(db, sql);
      const message = `after "${state.trim().slice(0, 40)}"\n${sql}\n${plan}`;
      expect(plan, message).not.toMatch(/Seq Scan on (tickets|ticket_ends|matches|idempotency_keys)|Bitmap/);
      const used = [...plan.matchAll(/Index (?:Only )?Scan (?:Backward )?using (\w+)/g)].map((found) => found[1]);
      expect([...new Set(used)].sort(), message).toEqual([...indexes].sort());
    }
    // The index has the order; a sort would read all waiting tickets.
    for (const sql of [lockOldestSql, oldestSql, newestSql, lockExpiredSql, waitsSql])
      expect(await genericPlan(db, sql)).not.toMatch(/Sort/);
  }
});

/** The best tenth of the samples: the time on an idle machine. */
const undisturbed = (times: readonly number[]) =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length / 10)] ?? Number.NaN;

test("a match among 100,000 waiting tickets takes at most twice as long as among 1,000", async () => {
  await using few = await openTestDatabase();
  await using many = await openTestDatabase();
  await few.db.query(tickets(1_000));
  await many.open(longTimeout).query(tickets(100_000));
  const times = { few: [] as number[], many: [] as number[] };
  const queues = {
    few: openPostgresQueue({ db: few.db, outbox: openOutbox() }),
    many: openPostgresQueue({ db: many.db, outbox: openOutbox() }),
  };
  const ratio = () => undisturbed(times.many) / undisturbed(times.few);
  // In turns, so that other load affects both. Load only makes a match slower, so a busy machine needs more samples.
  for (let n = 0; n < 60 || (n < 240 && ratio() >= 2); n++) {
    for (const which of ["few", "many"] as const) {
      const queue = queues[which];
      const startedAt = performance.now();
      expect(await queue.matchFifo(mode, { ...duels, matchesMax: 5 })).toEqual({ made: 5 });
      times[which].push(performance.now() - startedAt);
      await Promise.all(Array.from({ length: 10 }, () => queue.join(ticketRequest())));
    }
  }
  const [ofFew, ofMany] = [undisturbed(times.few), undisturbed(times.many)];
  const message = `${ofFew.toFixed(2)} ms beside a thousand, ${ofMany.toFixed(2)} ms beside a hundred thousand`;
  expect(ratio(), message).toBeLessThan(2);
});
