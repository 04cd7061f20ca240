import type { Db, Tx } from "@todoke/kernel/db";

/** On a pool a statement is a transaction of its own, whose lost COMMIT is reported as CommitUnknown. */
export const isPool = (db: Db | Tx): db is Db => "totalCount" in db;
