/**
 * Whether a PostgreSQL server can be reached, may be used, and keeps what it says it has kept.
 */
import { type Db, getSqlState, openDb } from "@todoke/kernel/db";
import { reasonOf } from "../faults.ts";
import { withoutSecrets } from "../settings.ts";
import { about, type Finding, type Findings } from "./finding.ts";

export interface DatabaseCheck {
  readonly name: string;
  readonly url: string | undefined;
  /** How many services will share its connections. */
  readonly services: number;
  /** How long a transaction may sit idle before it is told of. */
  readonly pinnedMsMax?: number;
}

export async function checkDatabase(check: DatabaseCheck): Promise<Finding[]> {
  const say = about(check.name);
  if (!check.url) return [say.ok("none given; `todoke dev` brings its own")];
  const db = openDb({ url: check.url, applicationName: "todoke doctor", poolMax: 1 });
  try {
    const facts = await readFacts(db);
    return [
      say.ok(`PostgreSQL ${facts.version} at ${withoutSecrets(check.url)}`),
      ...judged(facts, say, check.services),
      ...(await pinned(db, say, check.pinnedMsMax ?? 5 * 60_000)),
    ];
  } catch (error) {
    return [say.fault(`${withoutSecrets(check.url)}: ${reasonOf(error)}`, wayOut(error, check.url))];
  } finally {
    await db.end();
  }
}

interface Facts {
  readonly version: string;
  readonly major: number;
  readonly fsync: string;
  readonly synchronousCommit: string;
  readonly fullPageWrites: string;
  readonly encoding: string;
  readonly readOnly: boolean;
  readonly mayCreate: boolean;
  readonly database: string;
  readonly user: string;
  readonly connectionsMax: number;
  readonly clockAheadMs: number;
}

async function readFacts(db: Db): Promise<Facts> {
  await db.query("select 1"); // the first one also pays for the connection, which would count as clock difference
  const asked = Date.now();
  const { rows } = await db.query<Omit<Facts, "clockAheadMs"> & { now: Date }>(
    `select split_part(current_setting('server_version'), ' ', 1) as version,
            current_setting('server_version_num')::int / 10000 as major,
            current_setting('fsync') as fsync,
            current_setting('synchronous_commit') as "synchronousCommit",
            current_setting('full_page_writes') as "fullPageWrites",
            current_setting('server_encoding') as encoding,
            pg_is_in_recovery() or current_setting('default_transaction_read_only')::bool as "readOnly",
            has_database_privilege(current_database(), 'CREATE') as "mayCreate",
            current_database() as database,
            current_user as user,
            current_setting('max_connections')::int as "connectionsMax",
            clock_timestamp() as now`,
  );
  const [row] = rows;
  if (!row) throw new Error("it answers without an answer");
  return { ...row, clockAheadMs: row.now.getTime() - (asked + Date.now()) / 2 };
}

/** What has been answered must survive a power cut; these three settings are what that rests on. */
const durable = (facts: Facts): [setting: string, holds: boolean][] => [
  ["fsync", facts.fsync === "on"],
  ["full_page_writes", facts.fullPageWrites === "on"],
  ["synchronous_commit", facts.synchronousCommit !== "off"],
];

/** A service's pool (8), its listener and a spare. */
const connectionsPerService = 10;

/** Tokens between services live for 60 s and are checked by each machine's own clock. */
const clockAheadMsMax = 5_000;

function judged(facts: Facts, { warning, fault }: Findings, services: number): Finding[] {
  const findings: Finding[] = [];
  if (facts.major < 15) findings.push(fault(`PostgreSQL ${facts.version} is too old`, "Use 15 or newer."));
  for (const [setting] of durable(facts).filter(([, holds]) => !holds)) {
    const says = `${setting} is off: a power cut can lose what was answered`;
    findings.push(fault(says, `\`alter system set ${setting} = on; select pg_reload_conf();\``));
  }
  if (facts.encoding !== "UTF8") {
    findings.push(fault(`its encoding is ${facts.encoding}`, "Create the database with encoding UTF8."));
  }
  if (facts.readOnly) findings.push(fault("it is read-only: a standby", "Name the primary."));
  if (!facts.mayCreate) {
    const todo = `\`grant create on database "${facts.database}" to "${facts.user}";\``;
    findings.push(warning(`${facts.user} may not create schemas in ${facts.database}, so it cannot migrate`, todo));
  }
  const wanted = services * connectionsPerService;
  if (facts.connectionsMax < wanted) {
    const says = `max_connections is ${facts.connectionsMax}, and one copy of each service may want ${wanted}`;
    findings.push(warning(says, "Raise max_connections, or put a pooler in between."));
  }
  if (Math.abs(facts.clockAheadMs) > clockAheadMsMax) {
    const seconds = (facts.clockAheadMs / 1_000).toFixed(1);
    findings.push(warning(`its clock differs from this machine's by ${seconds} s`, "Let both follow a time server."));
  }
  return findings;
}

/** A transaction that is left open keeps every row that was deleted since: claiming slows down with each of them. */
async function pinned(db: Db, { warning }: Findings, msMax: number): Promise<Finding[]> {
  const { rows } = await db.query<{ pid: number; application: string; minutes: number }>(
    `select pid, application_name as application,
            round(extract(epoch from clock_timestamp() - xact_start) / 60)::int as minutes
       from pg_stat_activity
      where state like 'idle in transaction%'
        and coalesce(backend_xid, backend_xmin) is not null
        and xact_start < clock_timestamp() - $1 * interval '1 millisecond'
      order by xact_start
      limit 5`,
    [msMax],
  );
  return rows.map(({ pid, application, minutes }) =>
    warning(
      `session ${pid} (${application || "unnamed"}) has sat in a transaction for ${minutes} min, and keeps dead rows`,
      `\`select pg_terminate_backend(${pid});\` and have its owner set idle_in_transaction_session_timeout.`,
    ),
  );
}

function wayOut(error: unknown, url: string): string {
  const { username, pathname, host } = new URL(url);
  switch (getSqlState(error)) {
    case "28P01":
      return `Correct the password of ${username} in the URL.`;
    case "28000":
      return `Allow ${username} in the server's pg_hba.conf, or use another user.`;
    case "3D000":
      return `\`create database "${pathname.slice(1)}";\` or correct the name in the URL.`;
    case "53300":
      return "Raise max_connections, or find who holds so many connections.";
    default:
      return `See that PostgreSQL runs at ${host} and can be reached from here.`;
  }
}
