/**
 * Same caller, same route, same key: the effect happens once, and every answer is the same to the byte.
 *
 * The key's row, the effect and the stored answer are one commit. A duplicate that arrives while the first is under way
 * waits for it (2 s at the most) and replays its answer; a duplicate with another body is refused. Only what committed
 * is stored: a refusal or a failure leaves no trace, and the next request with the key runs anew.
 *
 * `once` runs a command in a transaction of its own. `command` makes one statement of a hot command, for batches.
 */
export {
  type Command,
  type CommandResult,
  type CommandSpec,
  command,
  insertResponseRowsSql,
  type KeyColumns,
  type KeyedResponse,
  keyColumns,
  responseRows,
  storedResponseSql,
} from "./command-sql.ts";
export { canonicalJson, digestOf } from "./digest.ts";
export {
  type Answer,
  type IdempotencyKey,
  idempotencyConflict,
  idempotencyInProgress,
  type OnceOptions,
  once,
  type Result,
} from "./once.ts";
