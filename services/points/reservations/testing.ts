/** What the tests of reservations share: grants booked ahead, and the pieces that carry them out, step by step. */
import { randomUUID } from "node:crypto";
import { encodeOutboxEvent } from "@todoke/contracts";
import type { Delivery } from "@todoke/kernel/bus";
import type { Db } from "@todoke/kernel/db";
import { digestOf } from "@todoke/kernel/idempotency";
import { openInbox } from "@todoke/kernel/inbox";
import { setup as setupLedger } from "../testing.ts";
import { cancel } from "./cancel.ts";
import { utcOf } from "./instant.ts";
import { onReservationDue } from "./on-reservation-due.ts";
import { type Reserve, reserve } from "./reserve.ts";
import { type SchedulerOptions, scheduler } from "./scheduler.ts";

export interface Wanted {
  readonly user?: string;
  readonly amount?: bigint;
  /** RFC 3339. */
  readonly at?: string;
  readonly expiresAt?: string;
  readonly key?: string;
  readonly caller?: string;
}

export const longAgo = "2020-01-01T00:00:00Z";

export async function setup() {
  const t = await setupLedger();
  const never = new AbortController().signal;

  /** Another process of the service, as far as reservations go. */
  function pieces(db: Db = t.open()) {
    const book = reserve({ db, onSoon: () => {}, soonMs: 10_000 });
    const inbox = openInbox({
      ...onReservationDue({ wake: () => {} }),
      db,
      attemptsMax: 2,
      backoff: { baseMs: 1, capMs: 1 },
    });
    return {
      reserve: (wanted: Wanted = {}) => reserveBy(book, wanted),
      cancel: (id: string, key: string = randomUUID()) =>
        cancel(db)(id, { scope: "shop DELETE /r", key, requestHash: digestOf(id) }),
      scheduler: (more: Partial<SchedulerOptions> = {}) =>
        scheduler({ db, wakeups: { on: () => () => {} }, topic: "t", onSent: () => {}, onError: thrown, ...more }),
      /** Hands deliveries to the worker as a bus does; says what it answers. */
      work: async (deliveries: readonly Delivery[]) =>
        (await inbox.handle(deliveries, never)).map((outcome) => outcome.kind),
      redrive: () => inbox.redriver.runOnce(),
    };
  }

  return {
    ...t,
    ...pieces(t.db),
    pieces,
    /** Everything that says of a reservation that it is due, as it would come from a bus, in the order of publication. */
    async dueEvents({ redelivered = false, skip = 0 } = {}): Promise<Delivery[]> {
      const rows = await t.rows(
        `select event_id, payload::text as payload from outbox_events
          where event_type = 'PointReservationDue' order by position offset $1`,
        [skip],
      );
      return rows.map(({ event_id, payload }) => ({
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
    statuses: async (): Promise<Record<string, number>> =>
      Object.fromEntries(
        (await t.rows(`select status, count(*)::int as n from point_reservations group by 1 order by 1`)).map(
          ({ status, n }) => [status, n],
        ),
      ),
    balanceOf: async (user: string): Promise<bigint> =>
      (await t.rows(`select balance from point_root where user_id = $1`, [user]))[0]?.balance ?? 0n,
  };
}

function thrown(error: unknown): never {
  throw error;
}

async function reserveBy(book: Reserve, wanted: Wanted) {
  const { user = "u_1", amount = 100n, at = longAgo, caller = "shop", key = randomUUID(), expiresAt } = wanted;
  const asked = { user, amount: String(amount), at, ...(expiresAt && { expiresAt }) };
  const answer = await book({
    key: { scope: `${caller} POST /point/reserve`, key, requestHash: digestOf(asked) },
    userId: user,
    amount,
    executeAt: utcOf(at, "microsecond") ?? "",
    ...(expiresAt && { expiresAt: utcOf(expiresAt, "millisecond") }),
  });
  const text = answer.body.toString();
  return { ...answer, text, id: JSON.parse(text).id as string };
}
