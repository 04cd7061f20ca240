/** Shared by the tests: the service's commands and workers on a database of its own. */
import { randomUUID } from "node:crypto";
import { encodeOutboxEvent } from "@todoke/contracts";
import { httpMigrations } from "@todoke/http";
import type { Delivery } from "@todoke/kernel/bus";
import type { Db } from "@todoke/kernel/db";
import { type CommandResponse, digestJson } from "@todoke/kernel/idempotency";
import { openInbox } from "@todoke/kernel/inbox";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { genericPlan, longTimeouts, testDatabase, until } from "@todoke/kernel/testing";
import { expect } from "vitest";
import { cancelReservation } from "./commands/cancel-reservation.ts";
import { changePoints, type PointsChange } from "./commands/change-points.ts";
import { type ReservePoints, reservePoints } from "./commands/reserve-points.ts";
import { onPointReservationDue } from "./events/on-point-reservation-due.ts";
import { parseInstant } from "./schedules/instant.ts";
import { auditLedger } from "./store/audit.ts";
import { createScheduler, type SchedulerOptions } from "./workers/scheduler.ts";

const own = { name: "points", dir: new URL("./migrations/", import.meta.url) };

export const longAgo = "2020-01-01T00:00:00Z";

export async function setup() {
  const t = await testDatabase({
    schema: "points",
    sets: [kernelMigrations, httpMigrations, own],
    pools: longTimeouts,
  });
  /** Another process: it shares nothing with the others but the database. */
  const process = (db: Db = t.open()) => ({ ...changesOn(db), ...reservationsOn(db) });
  const rows = async (query: string, values: unknown[] = []) => (await t.db.query(query, values)).rows;
  return {
    ...t,
    ...process(t.db),
    process,
    rows,
    audit: () => auditLedger(t.db),
    /** Lets time pass for lots and holds by moving their ends into the past. */
    async age(by: string) {
      await t.db.query(`update point_lots set expires_at = expires_at - $1::interval`, [by]);
      await t.db.query(`update point_holds set ends_at = ends_at - $1::interval`, [by]);
    },
    /** Every PointReservationDue as a bus would deliver it, in the order of publication. */
    async dueEvents({ redelivered = false, skip = 0 } = {}): Promise<Delivery[]> {
      const events = await rows(
        `select event_id, payload::text as payload from outbox_events
          where event_type = 'PointReservationDue' order by position offset $1`,
        [skip],
      );
      return events.map(({ event_id, payload }) => ({
        eventId: event_id,
        eventType: "PointReservationDue",
        subject: "points.reservations",
        aggregateKey: event_id,
        occurredAt: longAgo,
        headers: {},
        payload: encodeOutboxEvent({ eventType: "PointReservationDue", payload }),
        redelivered,
      }));
    },
    async statuses(): Promise<Record<string, number>> {
      const counts = await rows(`select status, count(*)::int as n from point_reservations group by 1 order by 1`);
      return Object.fromEntries(counts.map(({ status, n }) => [status, n]));
    },
    balanceOf: async (user: string): Promise<bigint> =>
      (await rows(`select balance from point_root where user_id = $1`, [user]))[0]?.balance ?? 0n,
  };
}

function changesOn(db: Db) {
  const submit = changePoints(db, () => {});
  const change = async (wanted: PointsChange, key: string = randomUUID()): Promise<ParsedAnswer> =>
    parseAnswer(await submit({ scope: "shop PUT /points", key, requestHash: digestJson(toJson(wanted)) }, wanted));
  return {
    change,
    add: (userId: string, amount: bigint, more: { expiresAt?: string; key?: string } = {}) =>
      change({ kind: "ADD", userId, amount, expiresAt: more.expiresAt ?? null }, more.key),
    sub: (userId: string, amount: bigint, key?: string) => change({ kind: "SUB", userId, amount }, key),
    hold: (userId: string, amount: bigint, ttlSeconds = 900) => change({ kind: "HOLD", userId, amount, ttlSeconds }),
    capture: (holdId: string, amount?: bigint) => change({ kind: "CAPTURE", holdId, amount }),
    release: (holdId: string) => change({ kind: "RELEASE", holdId }),
    refund: (transactionId: string, amount?: bigint) => change({ kind: "REFUND", transactionId, amount }),
  };
}

interface ParsedAnswer extends CommandResponse {
  readonly json: Record<string, string>;
}

/** Numbers become strings, because JSON.parse would round them. */
const parseAnswer = (answer: CommandResponse): ParsedAnswer => ({
  ...answer,
  json: JSON.parse(answer.body.toString().replace(/":(-?\d+)/g, '":"$1"')),
});

const toJson = (value: object): unknown =>
  JSON.parse(JSON.stringify(value, (_, each) => (typeof each === "bigint" ? each.toString() : each)));

function reservationsOn(db: Db) {
  const submit = reservePoints({ db, onSoon: () => {}, soonMs: 10_000 });
  const cancel = cancelReservation(db);
  const never = new AbortController().signal;
  const inbox = openInbox({
    ...onPointReservationDue({ wake: () => {} }),
    db,
    attemptsMax: 2,
    backoff: { baseMs: 1, capMs: 1 },
  });
  return {
    reserve: (wanted: WantedReservation = {}) => reserve(submit, wanted),
    cancel: (id: string, key: string = randomUUID()) =>
      cancel({ scope: "shop DELETE /r", key, requestHash: digestJson(id) }, id),
    scheduler: (more: Partial<SchedulerOptions> = {}) =>
      createScheduler({
        ...{ db, wakeups: { on: () => () => {} }, topic: "t", onSent: () => {}, onError: rethrow },
        ...more,
      }),
    /** Delivers events to the worker and returns the outcomes. */
    work: async (deliveries: readonly Delivery[]) =>
      (await inbox.handle(deliveries, never)).map((outcome) => outcome.kind),
    redrive: () => inbox.redriver.runOnce(),
  };
}

interface WantedReservation {
  readonly user?: string;
  readonly amount?: bigint;
  /** RFC 3339. */
  readonly at?: string;
  readonly expiresAt?: string;
  readonly key?: string;
  readonly caller?: string;
}

async function reserve(submit: ReservePoints, wanted: WantedReservation) {
  const { user = "u_1", amount = 100n, at = longAgo, caller = "shop", key = randomUUID(), expiresAt } = wanted;
  const body = { user, amount: String(amount), at, ...(expiresAt && { expiresAt }) };
  const answer = await submit({
    key: { scope: `${caller} POST /point/reserve`, key, requestHash: digestJson(body) },
    userId: user,
    amount,
    executeAt: parseInstant(at, "microsecond") ?? "",
    ...(expiresAt && { expiresAt: parseInstant(expiresAt, "millisecond") }),
  });
  const text = answer.body.toString();
  return { ...answer, text, id: JSON.parse(text).id as string };
}

/** An `onError` for tests in which nothing may fail. */
export function rethrow(error: unknown): never {
  throw error;
}

/** UUID v7 ids have millisecond precision: ids that a test orders need a millisecond each. */
export async function nextMillisecond(): Promise<void> {
  const at = Date.now();
  await until("the next millisecond", () => Date.now() > at);
}

/** RFC 3339. */
export const inSeconds = (seconds: number): string => new Date(Date.now() + seconds * 1_000).toISOString();

/** Keeps autovacuum from changing the statistics during a test. */
export async function keepStatistics(db: Db): Promise<void> {
  const { rows } = await db.query(`select tablename from pg_tables where schemaname = current_schema()`);
  for (const { tablename } of rows) await db.query(`alter table ${tablename} set (autovacuum_enabled = off)`);
}

/** The generic plan uses exactly these indexes. An index that is read from end to end is listed as "all of <name>". */
export async function expectProbes(db: Db, sql: string, indexes: readonly string[]): Promise<void> {
  const plan = await genericPlan(db, sql);
  expect(plan, `${sql}\n${plan}`).not.toMatch(/Seq Scan on (point|idempotency)|Bitmap/);
  const scans = plan.matchAll(/Index (?:Only )?Scan (?:Backward )?using (\w+).*(\n *Index Cond)?/g);
  const used = [...scans].map(([, name, condition]) => (condition ? name : `all of ${name}`));
  expect([...new Set(used)].sort(), `${sql}\n${plan}`).toEqual([...indexes].sort());
}
