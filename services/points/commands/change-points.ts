/**
 * Everything that callers do to points: add, spend, hold, capture, release, refund. Ledger, event and answer commit together,
 * for all requests of a batch at once.
 *
 * Requests for one user share a batch, each seeing what those before it have done: so a user on whom thousands of changes a
 * second are made costs a commit per batch, not per change. What runs twice is answered from what was kept. A refusal is kept
 * nowhere: the same request may succeed tomorrow.
 */
import { randomUUIDv7 } from "node:crypto";
import { type Db, transaction } from "@todoke/kernel/db";
import { gather } from "@todoke/kernel/gather";
import { type Answer, type IdempotencyKey, idempotencyConflict } from "@todoke/kernel/idempotency";
import { count, traceHeaders } from "@todoke/kernel/telemetry";
import type { Capture, Change, Grant, Refund, Release, SetAside, Spend } from "../ledger/changes.ts";
import { type Booked, book, type Entry } from "../store/ledger.ts";

type Request<Kind extends Change> = Omit<Kind, "id" | "idempotencyKey">;

/** A change as it is asked for: it gets its id here, and its key from the request. */
export type PointsChange =
  | (Request<Grant> & { readonly kind: "ADD" })
  | Request<Spend>
  | Request<SetAside>
  | Request<Capture>
  | Request<Release>
  | Request<Refund>;

export type ChangePoints = (key: IdempotencyKey, change: PointsChange) => Promise<Answer>;

// One batch is carried out while another waits for the disk, or for a user whom somebody else has locked. A third would only
// make them smaller, and a batch costs its seven round trips however small it is; of one hot user it would wait anyway.
const lanes = 2;

/** `onCommitted` hears of every batch that may have written events: the relay's wake-up. */
export function changePoints(db: Db, onCommitted: () => void): ChangePoints {
  const submit = gather<Entry, Answer>({
    lanes,
    touches: ({ change }) => [change.idempotencyKey],
    async run(entries) {
      const booked = await transaction(db, (tx) => book(tx, entries));
      if (booked.some(({ result }) => result === "booked")) onCommitted();
      return booked.map(toldOf);
    },
  });
  return (key, change) => submit(entryOf(key, change));
}

function entryOf(key: IdempotencyKey, change: PointsChange): Entry {
  const id = randomUUIDv7();
  return { key, change: { ...change, id, idempotencyKey: idempotencyKeyOf(key) }, headers: traceHeaders() };
}

/** No key has a space, and every scope has: so this never meets the keys of reservations, ends of holds and the like. */
const idempotencyKeyOf = ({ scope, key }: IdempotencyKey): string => `${scope} ${key}`;

function toldOf(booked: Booked): Answer | Error {
  if (booked.result === "refused") return booked.problem;
  count("todoke.idempotency.requests", { result: idempotencyResults[booked.result] });
  if (booked.result === "conflict") return idempotencyConflict(booked.detail);
  return booked.answer ?? new Error("a command was carried out without its key, and has no answer");
}

const idempotencyResults = { booked: "first", known: "replayed", conflict: "conflict" } as const;
