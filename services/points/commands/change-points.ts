/**
 * The batcher behind every command that changes points: add, spend, hold, capture, release and refund. Ledger, events and
 * responses of a batch are one commit.
 *
 * Requests for one user share a batch, each applied on top of the previous one, so a hot user costs a commit per batch and
 * not per change. A refusal is not stored: the same request may succeed later.
 */
import { randomUUIDv7 } from "node:crypto";
import { createBatcher } from "@todoke/kernel/batcher";
import { type Db, transaction } from "@todoke/kernel/db";
import type { CommandResponse, IdempotencyKey } from "@todoke/kernel/idempotency";
import { count, traceHeaders } from "@todoke/kernel/telemetry";
import type { Capture, Change, ChangeRequest, Grant, PlaceHold, Refund, Release, Spend } from "../ledger/changes.ts";
import { type PostResult, postChanges } from "./post-changes.ts";

type Wanted<Kind extends Change> = Omit<Kind, "id" | "idempotencyKey">;

/** A change as a caller requests it, without the id and key that it gets here. */
export type PointsChange =
  | (Wanted<Grant> & { readonly kind: "ADD" })
  | Wanted<Spend>
  | Wanted<PlaceHold>
  | Wanted<Capture>
  | Wanted<Release>
  | Wanted<Refund>;

export type ChangePoints = (key: IdempotencyKey, change: PointsChange) => Promise<CommandResponse>;

/** The command of one kind of change. */
export type PointsCommand<Kind extends PointsChange["kind"]> = (
  key: IdempotencyKey,
  change: Omit<Extract<PointsChange, { readonly kind: Kind }>, "kind">,
) => Promise<CommandResponse>;

// One batch runs while another waits for the disk or for a locked user. A third would only make batches smaller, and each
// costs seven round trips; for one hot user it would wait anyway.
const concurrency = 2;

/** `onCommitted` is called after every batch that may have written events. */
export function changePoints(db: Db, onCommitted: () => void): ChangePoints {
  const submit = createBatcher<ChangeRequest, CommandResponse>({
    concurrency,
    conflictKeys: ({ change }) => [change.idempotencyKey],
    async run(requests) {
      const results = await transaction(db, (tx) => postChanges(tx, requests));
      if (results.some(({ result }) => result === "posted")) onCommitted();
      return results.map(toResponse);
    },
  });
  return (key, change) => submit(toRequest(key, change));
}

export function toRequest(key: IdempotencyKey, change: PointsChange): ChangeRequest {
  // Scopes contain a space and keys none, so this never equals the key of a reservation or of a hold's end.
  const idempotencyKey = `${key.scope} ${key.key}`;
  return { key, change: { ...change, id: randomUUIDv7(), idempotencyKey }, headers: traceHeaders() };
}

export function toResponse(posted: PostResult): CommandResponse | Error {
  if (posted.result === "refused") return posted.problem;
  count("todoke.idempotency.requests", { result: posted.result === "posted" ? "first" : posted.result });
  if (posted.result === "conflict") return posted.problem;
  return posted.response ?? new Error("A command was posted without its key and has no response.");
}
