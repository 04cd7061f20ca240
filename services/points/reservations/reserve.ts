/**
 * Books a grant ahead. The reservation is the memory of its key, for ever: the same request is answered with the same
 * bytes, and another under the same key is refused. Requests that come together are written by one statement.
 */
import { randomUUIDv7 } from "node:crypto";
import type { Db } from "@todoke/kernel/db";
import { gather } from "@todoke/kernel/gather";
import { type Answer, type IdempotencyKey, idempotencyConflict } from "@todoke/kernel/idempotency";
import { count } from "@todoke/kernel/telemetry";
import { lotEndInThePast } from "../problems.ts";
import { insertReservations, type ReservationRow, type Reserved } from "./store/reserve.ts";

export interface Reservation {
  readonly key: IdempotencyKey;
  readonly userId: string;
  readonly amount: bigint;
  /** By `utcOf`: UTC, microseconds. In the past: due at once. */
  readonly executeAt: string;
  /** When the granted points run out; by `utcOf`: UTC, milliseconds. */
  readonly expiresAt?: string | undefined;
  readonly reason?: string | undefined;
}

/** A bulk request calls it for each: what is called together is written together, and answered or refused one by one. */
export type Reserve = (reservation: Reservation) => Promise<Answer>;

export interface ReserveOptions {
  readonly db: Db;
  /** Called after the commit when something is due within `soonMs`: the scheduler's wake-up. */
  readonly onSoon: () => void;
  /** How long the scheduler may sleep. */
  readonly soonMs: number;
}

// A bulk request of 1,000 takes two statements.
const batchMax = 500;

export function reserve({ db, onSoon, soonMs }: ReserveOptions): Reserve {
  const submit = gather<ReservationRow, Answer>({
    lanes: 3,
    batchMax,
    touches: (row) => [row.idempotency_key],
    async run(rows) {
      const reserved = await insertReservations(db, rows);
      if (reserved.some((each) => each.result === "first" && each.due_in_ms < soonMs)) onSoon();
      return reserved.map(answerOf);
    },
  });
  return async (reservation) => submit(rowOf(reservation));
}

function rowOf({ key, userId, amount, executeAt, expiresAt, reason }: Reservation): ReservationRow {
  if (expiresAt !== undefined && Date.parse(expiresAt) <= Date.parse(executeAt)) {
    throw lotEndInThePast("expires_at should be after execute_at");
  }
  return {
    id: randomUUIDv7(),
    user_id: userId,
    point_amount: String(amount),
    execute_at: executeAt,
    idempotency_key: keyOf(key),
    request_hash: key.requestHash.toString("hex"),
    lot_expires_at: expiresAt ?? null,
    reason: reason ?? null,
  };
}

/**
 * A scope begins with who was authenticated, whose name has no space; nor has a key. So nobody can make a key that is
 * another's, or a schedule's. The route is left out: whichever way a request comes, it is the same reservation.
 */
const keyOf = ({ scope, key }: IdempotencyKey): string => `${scope.split(" ", 1)[0]} ${key}`;

function answerOf({ result, body }: Reserved): Answer | Error {
  count("todoke.idempotency.requests", { result });
  if (result !== "conflict") {
    return { status: 201, contentType: "application/json; charset=utf-8", body, replayed: result === "replayed" };
  }
  return idempotencyConflict(
    "this Idempotency-Key was first sent with another body; use a new key for a new reservation",
  );
}
