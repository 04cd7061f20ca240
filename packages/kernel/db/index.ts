/**
 * PostgreSQL as the kernel uses it.
 *
 * A lost connection never ends the process; every wait has an end; whole numbers come back whole (int8 is a bigint); a
 * deadlock or a serialization failure is tried again; and a COMMIT whose answer was lost is an error class of its own,
 * because it is neither a success nor a failure.
 */
export { CommitUnknown, isUnavailable, sqlStateOf } from "./errors.ts";
export { type Applied, type MigrationSet, migrate, migrationsOf, Unmigratable } from "./migrate.ts";
export { type Db, type DbOptions, openDb, type Queryable } from "./pool.ts";
export { recordsSql } from "./records-sql.ts";
export { afterCommit, statement, type Tx, transaction } from "./transaction.ts";
export { utcText } from "./utc-text.ts";
