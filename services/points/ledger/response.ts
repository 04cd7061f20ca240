/** The HTTP response of a change. It is built once and stored; replays send the stored bytes. */
import type { Applied, Change } from "./changes.ts";

declare global {
  interface JSON {
    /** Missing in TypeScript's library. */
    rawJSON(text: string): object;
  }
}

export interface ResponseBytes {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

/** 201 for changes that create something with an id of its own. */
export function toResponse({ kind }: Change, applied: Applied): ResponseBytes {
  return {
    status: kind === "HOLD" || kind === "REFUND" ? 201 : 200,
    contentType: "application/json; charset=utf-8",
    body: Buffer.from(exactJson(toBody(applied))),
  };
}

function toBody({ transaction, hold, balance, held, version }: Applied) {
  const { id, userId, kind, pointAmount, moved, reason, source, sourceId, refersTo, createdAt } = transaction;
  return {
    transaction_id: id,
    user_id: userId,
    kind,
    point_amount: pointAmount,
    moved,
    balance,
    held,
    version,
    ...(reason !== null && { reason }),
    ...(source !== null && { source }),
    ...(sourceId !== null && { source_id: sourceId }),
    ...(refersTo !== null && { refers_to: refersTo }),
    created_at: createdAt,
    ...(hold && {
      hold_id: hold.holdId,
      amount: hold.amount,
      captured: hold.captured,
      released: hold.released,
      status: hold.status,
      ends_at: hold.endsAt,
    }),
  };
}

const exactJson = (value: unknown): string =>
  JSON.stringify(value, (_, each) => (typeof each === "bigint" ? exactInteger(each) : each));

/** A JSON integer with every digit: a JavaScript number would round above 2^53. */
export const exactInteger = (amount: bigint): object => JSON.rawJSON(amount.toString());
