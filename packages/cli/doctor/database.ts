/** Checks whether a PostgreSQL server can be reached and used, and whether its commits are durable. */
import { type Db, getSqlState, openDb, parseDatabaseUrl } from "@todoke/kernel/db";
import { parseServerUrl } from "@todoke/kernel/server-url";
import { formatError } from "../errors.ts";
import { redactUrl } from "../settings.ts";
import { type Finding, type Findings, findingsFor, unreachableRemedy } from "./finding.ts";
import { checkServers, checkStandbys } from "./standbys.ts";

export interface DatabaseCheck {
  readonly name: string;
  /** The variable that names it. */
  readonly variable: string;
  readonly url: string | undefined;
  /** Number of services that share its connections. */
  readonly services: number;
  /** A transaction that is idle for longer is reported. */
  readonly idleMsMax?: number;
}

export async function checkDatabase(check: DatabaseCheck): Promise<Finding[]> {
  const findings = findingsFor(check.name);
  if (!check.url) return [findings.ok("DATABASE_URL is not set; `todoke dev` starts its own")];
  const db = openDb({ url: check.url, applicationName: "todoke doctor", poolMax: 1 });
  try {
    const facts = await readServer(db);
    return [
      findings.ok(`PostgreSQL ${facts.version} at ${redactUrl(check.url)}`),
      ...checkSettings(facts, findings, check.services),
      ...checkStandbys(check.url, facts, findings),
      ...(await checkServers(check, findings)),
      ...checkPooler(check.url, check.variable, facts, findings),
      ...(await checkIdleTransactions(db, findings, check.idleMsMax ?? 5 * 60_000)),
    ];
  } catch (error) {
    return [
      findings.fault(`${redactUrl(check.url)}: ${formatError(error)}`, remedyFor(error, check.url, check.variable)),
    ];
  } finally {
    await db.end();
  }
}

export interface ServerFacts {
  readonly version: string;
  readonly major: number;
  readonly fsync: string;
  readonly synchronousCommit: string;
  readonly fullPageWrites: string;
  /** `synchronous_standby_names`; empty if no commit waits for a standby. */
  readonly waitsFor: string;
  /** Number of connected standbys that a commit waits for. */
  readonly synchronousStandbys: number;
  /** Whether this role sees which standbys are synchronous. */
  readonly seesStandbys: boolean;
  readonly encoding: string;
  readonly readOnly: boolean;
  readonly mayCreate: boolean;
  readonly database: string;
  readonly user: string;
  readonly connectionsMax: number;
  /** A setting that every connection of ours turns off. */
  readonly seqscan: string;
  readonly clockAheadMs: number;
}

async function readServer(db: Db): Promise<ServerFacts> {
  await db.query("select 1"); // opens the connection, whose delay would distort the clock difference
  const asked = Date.now();
  const { rows } = await db.query<Omit<ServerFacts, "clockAheadMs"> & { now: Date }>(
    `select split_part(current_setting('server_version'), ' ', 1) as version,
            current_setting('server_version_num')::int / 10000 as major,
            current_setting('fsync') as fsync,
            current_setting('synchronous_commit') as "synchronousCommit",
            current_setting('full_page_writes') as "fullPageWrites",
            current_setting('synchronous_standby_names') as "waitsFor",
            (select count(*)::int from pg_stat_replication where sync_state in ('sync', 'quorum')) as "synchronousStandbys",
            pg_has_role('pg_read_all_stats', 'USAGE') as "seesStandbys",
            current_setting('server_encoding') as encoding,
            pg_is_in_recovery() or current_setting('default_transaction_read_only')::bool as "readOnly",
            has_database_privilege(current_database(), 'CREATE') as "mayCreate",
            current_database() as database,
            current_user as user,
            current_setting('max_connections')::int as "connectionsMax",
            current_setting('enable_seqscan') as seqscan,
            clock_timestamp() as now`,
  );
  const [row] = rows;
  if (!row) throw new Error("the query returned no row");
  return { ...row, clockAheadMs: row.now.getTime() - (asked + Date.now()) / 2 };
}

/** A committed response must survive a power cut. That depends on these three settings. */
const durabilitySettings = (facts: ServerFacts): [setting: string, holds: boolean][] => [
  ["fsync", facts.fsync === "on"],
  ["full_page_writes", facts.fullPageWrites === "on"],
  ["synchronous_commit", facts.synchronousCommit !== "off"],
];

/** The pool of a service (8), that of its staff (2), its listener and one in reserve. */
const connectionsPerService = 12;

/** Tokens between services are valid for 60 s by the clock of each machine. */
const clockDifferenceMsMax = 5_000;

function checkSettings(facts: ServerFacts, { ok, warning, fault }: Findings, services: number): Finding[] {
  const findings: Finding[] = [];
  if (facts.major < 15) findings.push(fault(`PostgreSQL ${facts.version} is too old`, "Use 15 or newer."));
  for (const [setting] of durabilitySettings(facts).filter(([, holds]) => !holds)) {
    const says = `${setting} is off: a power cut can lose committed data`;
    findings.push(fault(says, `\`alter system set ${setting} = on; select pg_reload_conf();\``));
  }
  if (facts.encoding !== "UTF8") {
    findings.push(fault(`its encoding is ${facts.encoding}`, "Create the database with encoding UTF8."));
  }
  if (facts.readOnly) findings.push(fault("it is read-only (a standby)", "Use the URL of the primary."));
  if (!facts.mayCreate) {
    const says = `${facts.user} cannot create schemas in ${facts.database}: right for a role that serves`;
    findings.push(ok(`${says}. Run \`todoke migrate\` as the owner.`));
  }
  const wanted = services * connectionsPerService;
  if (facts.connectionsMax < wanted) {
    const says = `max_connections is ${facts.connectionsMax}, and one process of each service may need ${wanted}`;
    findings.push(warning(says, "Raise max_connections, or use a connection pooler."));
  }
  if (Math.abs(facts.clockAheadMs) > clockDifferenceMsMax) {
    const seconds = (facts.clockAheadMs / 1_000).toFixed(1);
    findings.push(
      warning(`its clock differs from this machine's by ${seconds} s`, "Synchronize both with a time server."),
    );
  }
  return findings;
}

/** Through PgBouncer a session has no settings and no LISTEN. Undeclared, it would lose the schema of a service too. */
function checkPooler(url: string, variable: string, facts: ServerFacts, { ok, warning, fault }: Findings): Finding[] {
  const { isPooled, directUrl } = parseDatabaseUrl(url);
  const setting = variable.replace(/URL$/, "DIRECT_URL");
  if (facts.seqscan !== "off") {
    const says = "settings of a session do not reach the server, so PgBouncer or another pooler stands before it";
    return [fault(says, `Add pgbouncer=true to ${variable}, and set ${setting} to PostgreSQL itself.`)];
  }
  if (!isPooled) return [];
  if (directUrl) return [ok(`through PgBouncer; wake-ups and migrations use ${redactUrl(directUrl)}`)];
  const says = "through PgBouncer without a direct URL: workers of other processes are not woken, they poll";
  return [warning(says, `Set ${setting} to PostgreSQL itself. \`todoke migrate\` needs it too.`)];
}

/** An open transaction keeps deleted rows from being vacuumed, and claims become slower with each of them. */
async function checkIdleTransactions(db: Db, { warning }: Findings, msMax: number): Promise<Finding[]> {
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
      `session ${pid} (${application || "unnamed"}) has been idle in a transaction for ${minutes} min, which prevents vacuum`,
      `\`select pg_terminate_backend(${pid});\` and set idle_in_transaction_session_timeout for its user.`,
    ),
  );
}

function remedyFor(error: unknown, url: string, variable: string): string {
  const { user: username = "", path: pathname = "", hosts = [] } = parseServerUrl(url) ?? {};
  switch (getSqlState(error)) {
    case "28P01":
      return `Correct the password of ${username} in the URL.`;
    case "28000":
      return `Allow ${username} in the server's pg_hba.conf, or use another user.`;
    case "3D000":
      return `\`create database "${pathname.slice(1)}";\` or correct the name in the URL.`;
    case "53300":
      return "Raise max_connections, or find the client with too many connections.";
    default:
      return (
        unreachableRemedy(error, variable) ??
        `Check that PostgreSQL runs at ${hosts.join(", ")} and can be reached from here.`
      );
  }
}
