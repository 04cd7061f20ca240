/** What a command is answered: made once, kept as bytes, and sent from there ever after. Amounts are exact JSON integers. */
import type { Hold } from "./account.ts";
import type { Applied, Change, Transaction } from "./changes.ts";

declare global {
  interface JSON {
    /** A text that stands in JSON as it is; TypeScript does not know it yet. */
    rawJSON(text: string): object;
  }
}

/** PUTs answer 200, and what makes something that can be named later 201. */
const statuses: Record<Change["kind"], number> = {
  ADD: 200,
  GRANT: 200,
  SUB: 200,
  HOLD: 201,
  CAPTURE: 200,
  RELEASE: 200,
  REFUND: 201,
};

export interface AnswerBytes {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

export function answerOf({ kind }: Change, applied: Applied): AnswerBytes {
  return {
    status: statuses[kind],
    contentType: "application/json; charset=utf-8",
    body: Buffer.from(exactJson(bodyOf(applied))),
  };
}

function bodyOf({ transaction, hold, balance, held, version }: Applied) {
  return {
    ...transactionView(transaction),
    balance,
    held,
    version,
    ...(hold && holdView(hold)),
  };
}

/** One transaction, as the API shows it; fields that are not set are left out. */
function transactionView(transaction: Transaction) {
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

/** JSON with every digit of a bigint: a JavaScript number would round past 2^53. */
const exactJson = (value: unknown): string =>
  JSON.stringify(value, (_, each) => (typeof each === "bigint" ? exactly(each) : each));

/** What JSON.stringify writes with every digit. */
export const exactly = (amount: bigint): object => JSON.rawJSON(amount.toString());
