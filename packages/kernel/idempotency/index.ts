/**
 * Idempotency keys: requests with the same caller, route and key take effect once and get the same response, byte for byte.
 *
 * The key, the effect and the stored response are one commit. A duplicate that arrives while the first request runs waits
 * for it (at most 2 s) and replays its response; a duplicate with another body is a conflict. Only committed responses are
 * stored: after a refusal or a failure, the next request with the key runs.
 *
 * `once` runs a command in a transaction. `command` executes batches of a hot command in one statement.
 */
export {
  type Command,
  type CommandResult,
  type CommandSpec,
  command,
  insertResponseRowsSql,
  type KeyColumns,
  type KeyedResponse,
  responseRows,
  storedResponseSql,
  toKeyColumns,
} from "./command-sql.ts";
export { canonicalJson, digestJson } from "./digest.ts";
export {
  type CommandResponse,
  type IdempotencyKey,
  idempotencyConflict,
  idempotencyInProgress,
  type JsonResponse,
  keyConflict,
  type OnceOptions,
  once,
} from "./once.ts";
