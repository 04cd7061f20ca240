/** What was carried out before, by its key. */
import type { Tx } from "@todoke/kernel/db";
import { type Answer, storedResponseSql } from "@todoke/kernel/idempotency";
import type { Entry } from "./ledger.ts";

export interface Known {
  readonly transactionId: string;
  /** Null when it is forgotten, or was never kept. */
  readonly answer: (Answer & { readonly requestHash: Buffer }) | null;
}

interface KnownRow {
  readonly place: number;
  readonly transaction_id: string;
  readonly request_hash: Buffer | null;
  readonly status: number;
  readonly content_type: string;
  readonly body: Buffer;
}

/** No answer is kept without its transaction, so the transaction is looked for first: one probe for what is new. */
export const knownText = `
select i.place::int, t.transaction_id, k.*
  from unnest($1::text[], $2::text[], $3::text[]) with ordinality as i(idempotency_key, scope, idem_key, place)
 cross join lateral (select t.id as transaction_id from point_transactions t
                      where t.idempotency_key = i.idempotency_key limit 1) t
  left join lateral (${storedResponseSql({ scope: "i.scope", key: "i.idem_key" })}) k on true`;

/** Each in its place; undefined where nothing has happened yet. */
export async function selectKnown(tx: Tx, entries: readonly Entry[]): Promise<(Known | undefined)[]> {
  const { rows } = await tx.query<KnownRow>({
    name: "select known keys",
    text: knownText,
    values: [
      entries.map(({ change }) => change.idempotencyKey),
      entries.map(({ key }) => key?.scope ?? null),
      entries.map(({ key }) => key?.key ?? null),
    ],
  });
  const found = new Map(rows.map((row) => [row.place, knownOf(row)]));
  return entries.map((_, index) => found.get(index + 1));
}

function knownOf({ transaction_id: transactionId, request_hash: requestHash, ...stored }: KnownRow): Known {
  if (requestHash === null) return { transactionId, answer: null };
  const { status, content_type: contentType, body } = stored;
  return { transactionId, answer: { status, contentType, body, requestHash, replayed: true } };
}
