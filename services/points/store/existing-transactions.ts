/** Transactions that were already posted under the keys of new requests. */
import type { Tx } from "@todoke/kernel/db";
import { type Answer, storedResponseSql } from "@todoke/kernel/idempotency";
import type { ChangeRequest } from "../ledger/changes.ts";

export interface ExistingTransaction {
  readonly transactionId: string;
  /** Null if it is deleted by retention, or if the request had no key of a caller. */
  readonly response: (Answer & { readonly requestHash: Buffer }) | null;
}

interface ExistingRow {
  readonly ordinal: number;
  readonly transaction_id: string;
  readonly request_hash: Buffer | null;
  readonly status: number;
  readonly content_type: string;
  readonly body: Buffer;
}

/** The transaction is looked up first, because no response exists without it: a new key costs one probe. */
export const existingTransactionsSql = `
select i.ordinal::int, t.transaction_id, k.*
  from unnest($1::text[], $2::text[], $3::text[]) with ordinality as i(idempotency_key, scope, idem_key, ordinal)
 cross join lateral (select t.id as transaction_id from point_transactions t
                      where t.idempotency_key = i.idempotency_key limit 1) t
  left join lateral (${storedResponseSql({ scope: "i.scope", key: "i.idem_key" })}) k on true`;

/** In input order; undefined for a new key. */
export async function selectExistingTransactions(
  tx: Tx,
  requests: readonly ChangeRequest[],
): Promise<(ExistingTransaction | undefined)[]> {
  const { rows } = await tx.query<ExistingRow>({
    name: "select existing transactions",
    text: existingTransactionsSql,
    values: [
      requests.map(({ change }) => change.idempotencyKey),
      requests.map(({ key }) => key?.scope ?? null),
      requests.map(({ key }) => key?.key ?? null),
    ],
  });
  const found = new Map(rows.map((row) => [row.ordinal, toExisting(row)]));
  return requests.map((_, index) => found.get(index + 1));
}

function toExisting({
  transaction_id: transactionId,
  request_hash: requestHash,
  ...stored
}: ExistingRow): ExistingTransaction {
  if (requestHash === null) return { transactionId, response: null };
  const { status, content_type: contentType, body } = stored;
  return { transactionId, response: { status, contentType, body, requestHash, replayed: true } };
}
