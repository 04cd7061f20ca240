/** Checks whether several PostgreSQL servers can do what several are for: outlive the loss of the primary. */
import { openDb, parseDatabaseUrl } from "@todoke/kernel/db";
import { parseServerUrl } from "@todoke/kernel/server-url";
import { formatError } from "../errors.ts";
import type { DatabaseCheck, ServerFacts } from "./database.ts";
import type { Finding, Findings } from "./finding.ts";

/** With several servers, an answered command must outlive the primary: its commit has to wait for a standby. */
export function checkStandbys(url: string, facts: ServerFacts, { ok, warning, fault }: Findings): Finding[] {
  const { waitsFor, synchronousStandbys, seesStandbys, synchronousCommit } = facts;
  const isCluster = parseDatabaseUrl(url).servers.length > 1;
  if (waitsFor === "") {
    if (!isCluster) return [];
    const says = "no commit waits for a standby: a promoted standby may lack answered commands";
    return [warning(says, "`alter system set synchronous_standby_names = '*'; select pg_reload_conf();`")];
  }
  if (synchronousCommit === "local") {
    const says = "synchronous_commit is local: commits do not wait for the standbys in synchronous_standby_names";
    return [warning(says, "`alter system set synchronous_commit = on; select pg_reload_conf();`")];
  }
  if (!seesStandbys) return []; // Another role may see what is wrong.
  if (synchronousStandbys > 0) return [ok(`commits wait for ${waitsFor}`)];
  const says = `commits wait for a standby (synchronous_standby_names is ${waitsFor}), and none is connected`;
  const answerAlone = "`alter system set synchronous_standby_names = ''; select pg_reload_conf();`";
  return [fault(says, `Start or connect a standby, or let the primary answer alone: ${answerAlone}`)];
}

/** Every server of a list must be there, and one of them accept writes. */
export async function checkServers({ url, variable }: DatabaseCheck, findings: Findings): Promise<Finding[]> {
  const { servers } = parseDatabaseUrl(url ?? "");
  if (servers.length < 2) return [];
  const hosts = parseServerUrl(url ?? "")?.hosts ?? [];
  const roles = await Promise.all(servers.map(readRole));
  const unreachable = roles.flatMap((role, n) =>
    role instanceof Error
      ? findings.warning(`${hosts[n]} cannot be used: ${formatError(role)}`, `Start it, or correct ${variable}.`)
      : [],
  );
  const primaries = hosts.filter((_, n) => roles[n] === "primary");
  if (primaries.length < 2) return unreachable;
  const says = `${primaries.join(" and ")} accept writes: a standby was promoted while its former primary runs`;
  const todo = "Stop the former primary, and make it a standby with pg_basebackup or pg_rewind.";
  return [...unreachable, findings.fault(says, todo)];
}

async function readRole(url: string): Promise<"primary" | "standby" | Error> {
  const db = openDb({ url, applicationName: "todoke doctor", poolMax: 1, connectTimeoutMs: 3_000 });
  try {
    const { rows } = await db.query<{ standby: boolean }>(`select pg_is_in_recovery() as standby`);
    return rows[0]?.standby ? "standby" : "primary";
  } catch (error) {
    return error as Error;
  } finally {
    await db.end();
  }
}
