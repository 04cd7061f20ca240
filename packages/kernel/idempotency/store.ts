/** The SQL of `once`. */
import type { Queryable, Tx } from "../db/index.ts";
import { keyTtlSql } from "./command-sql.ts";
import type { CommandResponse, IdempotencyKey } from "./once.ts";

/**
 * Returns true if this transaction must run the command, because the key is new or expired. Waits for a transaction that
 * holds the same key; the next statement then sees what it committed.
 */
export async function insertKey(tx: Tx, { scope, key, requestHash }: IdempotencyKey): Promise<boolean> {
  const { rowCount } = await tx.query({
    name: "idempotency insert",
    text: `insert into idempotency_keys as k (scope, idem_key, request_hash, expires_at)
           values ($1, $2, $3, clock_timestamp() + ${keyTtlSql})
           on conflict (scope, idem_key) do update
              set request_hash = excluded.request_hash, expires_at = excluded.expires_at, created_at = now(),
                  response_status = null, response_content_type = null, response_body = null
            where k.expires_at <= clock_timestamp()`,
    values: [scope, key, requestHash],
  });
  return rowCount === 1;
}

export type StoredResponse = Omit<CommandResponse, "replayed"> & { readonly requestHash: Buffer };

export async function selectResponse(
  db: Queryable,
  { scope, key }: IdempotencyKey,
): Promise<StoredResponse | undefined> {
  const { rows } = await db.query<StoredResponse>({
    name: "idempotency read",
    text: `select request_hash as "requestHash", response_status as status, response_content_type as "contentType",
                  response_body as body
             from idempotency_keys
            where scope = $1 and idem_key = $2 and expires_at > clock_timestamp() and response_status is not null`,
    values: [scope, key],
  });
  return rows[0];
}

export async function saveResponse(
  tx: Tx,
  { scope, key }: IdempotencyKey,
  response: Omit<CommandResponse, "replayed">,
): Promise<void> {
  await tx.query({
    name: "idempotency save",
    text: `update idempotency_keys set response_status = $3, response_content_type = $4, response_body = $5
            where scope = $1 and idem_key = $2`,
    values: [scope, key, response.status, response.contentType, response.body],
  });
}
