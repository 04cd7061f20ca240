/** A new database per contender and round, so that no contender suffers from the bloat of another. */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type Db, openDb } from "@todoke/kernel/db";

export interface PeerDatabase extends AsyncDisposable {
  readonly url: string;
}

export async function peerDatabase(serverUrl: string): Promise<PeerDatabase> {
  const name = `peer_${randomBytes(8).toString("hex")}`;
  const admin = openDb({ url: serverUrl, poolMax: 1, statementTimeoutMs: 60_000 });
  await admin.query(`create database ${name}`);
  return {
    url: Object.assign(new URL(serverUrl), { pathname: `/${name}` }).href,
    async [Symbol.asyncDispose]() {
      await waitForDisconnect(admin, name);
      await admin.query(`drop database ${name} with (force)`);
      await admin.end();
    },
  };
}

/** Waits up to a minute for the peer's pool to close: dropping the database under it makes some peers throw uncaught errors. */
async function waitForDisconnect(admin: Db, name: string): Promise<void> {
  for (let attempt = 0; attempt < 600; attempt++) {
    const { rowCount } = await admin.query("select from pg_stat_activity where datname = $1 limit 1", [name]);
    if (rowCount === 0) return;
    await sleep(100);
  }
}

/** A pool with PostgreSQL's default planner settings, which tests of the kernel change. */
export function defaultPool(url: string, poolMax: number): Db {
  const plain = new URL(url);
  plain.searchParams.set("options", "-c enable_seqscan=on -c enable_bitmapscan=on");
  return openDb({ url: plain.href, poolMax, statementTimeoutMs: 0, idleInTransactionTimeoutMs: 0 });
}

/** Size of a schema's tables, indexes and TOAST. */
export async function schemaBytes(db: Db, schema: string): Promise<number> {
  const { rows } = await db.query(
    `select coalesce(sum(pg_total_relation_size(c.oid)), 0)::float8 as bytes
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1 and c.relkind = 'r'`,
    [schema],
  );
  return rows[0].bytes;
}

export async function countRows(db: Db, unfinished: string): Promise<number> {
  const { rows } = await db.query(`select count(*)::int as count from ${unfinished}`);
  return rows[0].count;
}
