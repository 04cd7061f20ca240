/**
 * Reserves a grant at a future time. The reservation itself stores its idempotency key, so keys never expire. Requests that
 * arrive together are inserted by one statement.
 */
import { randomUUIDv7 } from "node:crypto";
import { createBatcher } from "@todoke/kernel/batcher";
import type { Db } from "@todoke/kernel/db";
import { type CommandResponse, type IdempotencyKey, keyConflict } from "@todoke/kernel/idempotency";
import { count } from "@todoke/kernel/telemetry";
import { lotEndInThePast } from "../problems.ts";
import { type InsertResult, insertReservations, type ReservationRow } from "../store/insert-reservations.ts";

export interface Reservation {
  readonly key: IdempotencyKey;
  readonly userId: string;
  readonly amount: bigint;
  /** UTC with microseconds, from `parseInstant`. A time in the past is due at once. */
  readonly executeAt: string;
  /** When the granted points expire: UTC with milliseconds, from `parseInstant`. */
  readonly expiresAt?: string | undefined;
  readonly reason?: string | undefined;
}

export type ReservePoints = (reservation: Reservation) => Promise<CommandResponse>;

export interface ReserveOptions {
  readonly db: Db;
  /** Called after the commit if a reservation is due within `soonMs`: wakes the scheduler. */
  readonly onSoon: () => void;
  readonly soonMs: number;
}

// A batch request of 1,000 takes two statements.
const batchMax = 500;

export function reservePoints({ db, onSoon, soonMs }: ReserveOptions): ReservePoints {
  const submit = createBatcher<ReservationRow, CommandResponse>({
    concurrency: 3,
    batchMax,
    conflictKeys: (row) => [row.idempotency_key],
    async run(rows) {
      const results = await insertReservations(db, rows);
      if (results.some((each) => each.result === "first" && each.due_in_ms < soonMs)) onSoon();
      return results.map(toAnswer);
    },
  });
  return async (reservation) => submit(toRow(reservation));
}

function toRow({ key, userId, amount, executeAt, expiresAt, reason }: Reservation): ReservationRow {
  if (expiresAt !== undefined && Date.parse(expiresAt) <= Date.parse(executeAt)) {
    throw lotEndInThePast("expires_at must be after execute_at.");
  }
  return {
    id: randomUUIDv7(),
    user_id: userId,
    point_amount: String(amount),
    execute_at: executeAt,
    idempotency_key: storedKey(key),
    request_hash: key.requestHash.toString("hex"),
    lot_expires_at: expiresAt ?? null,
    reason: reason ?? null,
  };
}

/**
 * A scope begins with the authenticated caller. Neither callers nor keys contain a space, so a caller cannot forge a key of
 * another caller or of a schedule. The command is left out: both paths and the batch mean the same reservation.
 */
const storedKey = ({ scope, key }: IdempotencyKey): string => `${scope.split(" ", 1)[0]} ${key}`;

function toAnswer({ result, body }: InsertResult): CommandResponse | Error {
  count("todoke.idempotency.requests", { result });
  if (result === "conflict") return keyConflict();
  return { status: 201, contentType: "application/json; charset=utf-8", body, replayed: result === "replayed" };
}
