/** Classifies database errors: the server replied, the server could not be reached, or the result is unknown. */

/**
 * The connection was lost during COMMIT, so the transaction took effect or it did not. Only a retry with the same
 * idempotency key can tell. Never report it as a failure, and never rerun the work without a key.
 */
export class CommitUnknown extends Error {
  override readonly name = "CommitUnknown";
  constructor(cause: unknown) {
    super("the connection was lost during COMMIT: the transaction may have taken effect or not", { cause });
  }
}

/** Returns the SQLSTATE ("23505") of a server error, or undefined if the server did not send the error. */
export function getSqlState(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error) || !("severity" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** A serialization failure or a deadlock: the transaction may succeed if it is run again. */
export function isSerializationFailure(error: unknown): boolean {
  const state = getSqlState(error);
  return state === "40001" || state === "40P01";
}

/**
 * True if the transaction was certainly rolled back. A session that is being terminated (57P…) also reports an error, but
 * may do so after the commit record was written.
 */
export function isRolledBack(error: unknown): boolean {
  const state = getSqlState(error);
  return state !== undefined && !state.startsWith("57P") && !state.startsWith("08");
}

const unavailableStates = new Set([
  "25006", // read-only: a replica, or a primary that was just demoted
  "57P01", // shut down by an administrator
  "57P02", // another session crashed, so the whole server restarts
  "57P03", // starting up
  "55P03", // lock timeout: busy rather than broken
]);

// EMFILE, ENFILE: this process has no file descriptor left for a connection.
const connectionCodes = new Set(
  "ECONNREFUSED ECONNRESET ECONNABORTED ETIMEDOUT EPIPE ENOTFOUND EAI_AGAIN EHOSTUNREACH ENETUNREACH ENOENT EMFILE ENFILE".split(
    " ",
  ),
);

// node-postgres has no codes for these. Its own tests pin the texts.
const connectionTexts =
  /^(connection terminated|timeout e?xce?eded when trying to connect|client has encountered a connection error|cannot use a pool after calling end|query read timeout)/i;

/** True if the database is unavailable now. The request is not at fault and can be retried later. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const state = getSqlState(error);
  if (state) return unavailableStates.has(state) || state.startsWith("08") || state.startsWith("53");
  if ("code" in error && connectionCodes.has(String(error.code))) return true;
  if (connectionTexts.test(error.message)) return true;
  return error.cause !== undefined && isUnavailable(error.cause);
}
