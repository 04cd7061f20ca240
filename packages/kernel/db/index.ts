/**
 * PostgreSQL as the kernel uses it.
 *
 * A lost connection never ends the process. Every wait has a timeout. int8 is read as bigint, without rounding. Deadlocks
 * and serialization failures are retried. A COMMIT whose response was lost is an error class of its own, because it is
 * neither a success nor a failure.
 */
export { clientClass } from "./client.ts";
export { directUrlOf, parseDatabaseUrl } from "./database-url.ts";
export { CommitUnknown, getSqlState, isUnavailable } from "./errors.ts";
export {
  type AppliedMigration,
  MigrationError,
  type MigrationSet,
  migrate,
  migrationUrl,
  readMigrations,
} from "./migrate.ts";
export { omitNulls } from "./omit-nulls.ts";
export { type Db, type DbOptions, openDb, type Queryable } from "./pool.ts";
export { recordsSql } from "./records-sql.ts";
export { toLastError, toStorableText } from "./storable-text.ts";
export { afterCommit, runStatement, type Tx, transaction } from "./transaction.ts";
export { rfc3339Sql } from "./utc-text.ts";
