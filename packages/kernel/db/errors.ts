/** Tells apart the ways in which talking to PostgreSQL fails: an answer, no answer, and an unknown one. */

/**
 * The connection was lost while a commit was under way. The transaction took effect or it did not; only asking again by
 * the same idempotency key tells. Never answer it as a failure, and never run the work again blindly.
 */
export class CommitUnknown extends Error {
  override readonly name = "CommitUnknown";
  constructor(cause: unknown) {
    super("the connection was lost during COMMIT: the transaction may have taken effect or not", { cause });
  }
}

/** The five characters of a PostgreSQL answer ("23505"), or undefined when the error is no answer of the server. */
export function sqlStateOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error) || !("severity" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** The server says that the transaction lost against another one: run again, it may well succeed. */
export function lostARace(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === "40001" || state === "40P01";
}

/**
 * True when the server surely rolled the transaction back. A session that is being ended (57P01 and its kin) answers
 * too, but may do so after the commit record was written: that is no proof.
 */
export function isRolledBack(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state !== undefined && !state.startsWith("57P") && !state.startsWith("08");
}

const unavailableStates = new Set([
  "25006", // read-only: a replica, or a primary that was just demoted
  "57P01", // shut down by an administrator
  "57P02", // crash of another session: the whole server restarts
  "57P03", // starting up
  "55P03", // a lock was not to be had in time: busy rather than broken
]);

const connectionCodes = new Set(
  "ECONNREFUSED ECONNRESET ECONNABORTED ETIMEDOUT EPIPE ENOTFOUND EAI_AGAIN EHOSTUNREACH ENETUNREACH ENOENT".split(" "),
);

// node-postgres has no codes for these; its tests hold the texts still.
const connectionTexts =
  /^(connection terminated|timeout e?xce?eded when trying to connect|client has encountered a connection error|cannot use a pool after calling end|query read timeout)/i;

/** True when the database could not do its part just now: nothing is wrong with the request, try again later. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const state = sqlStateOf(error);
  if (state) return unavailableStates.has(state) || state.startsWith("08") || state.startsWith("53");
  if ("code" in error && connectionCodes.has(String(error.code))) return true;
  if (connectionTexts.test(error.message)) return true;
  return error.cause !== undefined && isUnavailable(error.cause);
}
