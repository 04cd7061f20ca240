/** The HTTP response of a change. It is built once and stored; replays send the stored bytes. */
import type { Hold } from "./account.ts";
import type { Applied, Change, PointTransaction } from "./changes.ts";

declare global {
  interface JSON {
    /** Missing in TypeScript's library. */
    rawJSON(text: string): object;
  }
}

/** 201 for changes that create something with an id of its own. */
const statuses: Record<Change["kind"], number> = {
  ADD: 200,
  GRANT: 200,
  SUB: 200,
  HOLD: 201,
  CAPTURE: 200,
  RELEASE: 200,
  REFUND: 201,
};

export interface ResponseBytes {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

export function toResponse({ kind }: Change, { transaction, hold, balance, held, version }: Applied): ResponseBytes {
  const body = { ...transactionView(transaction), balance, held, version, ...(hold && holdView(hold)) };
  return {
    status: statuses[kind],
    contentType: "application/json; charset=utf-8",
    body: Buffer.from(exactJson(body)),
  };
}

function transactionView(transaction: PointTransaction) {
  const { id, userId, kind, pointAmount, moved, reason, source, sourceId, refersTo } = transaction;
  return {
    transaction_id: id,
    user_id: userId,
    kind,
    point_amount: pointAmount,
    moved,
    balance: transaction.balanceAfter,
    held: transaction.heldAfter,
    version: transaction.version,
    ...(reason !== null && { reason }),
    ...(source !== null && { source }),
    ...(sourceId !== null && { source_id: sourceId }),
    ...(refersTo !== null && { refers_to: refersTo }),
    created_at: transaction.createdAt,
  };
}

const holdView = ({ holdId, amount, captured, released, status, endsAt }: Hold) => ({
  hold_id: holdId,
  amount,
  captured,
  released,
  status,
  ends_at: endsAt,
});

const exactJson = (value: unknown): string =>
  JSON.stringify(value, (_, each) => (typeof each === "bigint" ? exactInteger(each) : each));

/** A JSON integer with every digit: a JavaScript number would round above 2^53. */
export const exactInteger = (amount: bigint): object => JSON.rawJSON(amount.toString());
