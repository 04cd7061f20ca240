/** Finds the server that accepts writes among several. */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { ServerUnreachable } from "../server-url/index.ts";

/** Less than a pool waits for a connection, so that an unreachable server does not use up the time of the others. */
const searchTimeoutMs = 3_000;

/** How long the others may take when one server has answered that it accepts writes. */
const othersMs = 300;

export type Address = Pick<pg.Client, "host" | "port">;

/** One URL per server. Asks all servers at once: one that does not respond delays nobody by more than `othersMs`. */
export async function findPrimary(servers: readonly string[]): Promise<Address> {
  const found: Found[] = [];
  const checks = servers.map(async (server) => void found.push(await checkPrimary(server)));
  try {
    await Promise.any(checks);
  } catch (error) {
    const reasons = error instanceof AggregateError ? error.errors.map((each) => each.message) : [String(error)];
    throw new ServerUnreachable(`no server of the list accepts writes: ${reasons.join("; ")}`, { cause: error });
  }
  const stop = new AbortController();
  await Promise.race([Promise.allSettled(checks), sleep(othersMs, undefined, { signal: stop.signal }).catch(() => {})]);
  stop.abort();
  const { host, port } = found.length > 1 ? await findLatest([...found]) : (found[0] as Found);
  return { host, port };
}

interface Found extends Address {
  readonly server: string;
}

/** A standby was promoted, and the former primary still runs. Each promotion begins a timeline with a higher number (docs/adr/0173). */
async function findLatest(found: readonly Found[]): Promise<Found> {
  const timelines = await Promise.all(found.map((each) => readTimeline(each.server).catch(() => 0)));
  return found[timelines.indexOf(Math.max(...timelines))] as Found;
}

const checkPrimary = (server: string): Promise<Found> =>
  ask(server, async (client) => {
    const { rows } = await client.query(
      `select pg_is_in_recovery() or current_setting('default_transaction_read_only')::bool as "isReadOnly"`,
    );
    if (rows[0]?.isReadOnly) throw new Error("it is a standby");
    return { server, host: client.host, port: client.port };
  });

const readTimeline = (server: string): Promise<number> =>
  ask(server, async (client) => {
    // The first eight digits of a WAL file's name are its timeline.
    const { rows } = await client.query(`select left(pg_walfile_name(pg_current_wal_lsn()), 8) as timeline`);
    return Number.parseInt(rows[0]?.timeline, 16);
  });

async function ask<T>(server: string, question: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: server,
    application_name: "todoke search for the primary",
    connectionTimeoutMillis: searchTimeoutMs,
    query_timeout: searchTimeoutMs,
  });
  client.on("error", () => {}); // connect() or query() rejects with it.
  try {
    await client.connect();
    return await question(client);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`${client.host}:${client.port}: ${message}`, { cause: error });
  } finally {
    client.end().catch(() => {});
  }
}
