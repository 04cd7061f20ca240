/** Measures the processes and databases of a run: memory, open handles, CPU, sizes of tables and indexes, WAL, backlog. */
import { readdirSync, readFileSync } from "node:fs";
import { schemaOf } from "../databases.ts";
import type { Harness } from "../harness.ts";

export interface ProcessUse {
  readonly memoryMb: number;
  readonly handles: number;
  /** Since its start. */
  readonly cpuMs: number;
}

/** Undefined if the process has exited, and where /proc is missing. */
function measureProcess(pid: number): ProcessUse | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    // User and system time, in ticks of 10 ms.
    const cpuMs = (Number(stat[11]) + Number(stat[12])) * 10;
    const handles = readdirSync(`/proc/${pid}/fd`).length;
    return { memoryMb: Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1_024, handles, cpuMs };
  } catch {
    return undefined;
  }
}

/** All processes of the services that serve, together. */
export function measureProcesses({ slots }: Harness): ProcessUse & { readonly largestMb: number } {
  const all = slots.flatMap(({ pid }) => (pid === undefined ? [] : (measureProcess(pid) ?? [])));
  const sum = (of: (use: ProcessUse) => number) => all.reduce((total, use) => total + of(use), 0);
  return {
    memoryMb: sum(({ memoryMb }) => memoryMb),
    handles: sum(({ handles }) => handles),
    cpuMs: sum(({ cpuMs }) => cpuMs),
    largestMb: Math.max(0, ...all.map(({ memoryMb }) => memoryMb)),
  };
}

export interface DatabaseUse {
  readonly tableBytes: number;
  readonly indexBytes: number;
  readonly walBytes: number;
  /** Unfinished work, as the services count it. */
  readonly backlog: number;
}

export async function measureDatabases({ databases, services }: Harness): Promise<DatabaseUse> {
  let [tableBytes, indexBytes, backlog] = [0, 0, 0];
  for (const { name, unfinished } of services) {
    const { rows } = await databases.of(name).query(sizesSql, [schemaOf(name)]);
    tableBytes += Number(rows[0].table_bytes);
    indexBytes += Number(rows[0].index_bytes);
    backlog += (await databases.of(name).query(unfinished)).rows[0].unfinished;
  }
  const wal = await databases.server.query(`select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as bytes`);
  return { tableBytes, indexBytes, walBytes: wal.rows[0].bytes, backlog };
}

const sizesSql = `
select coalesce(sum(pg_table_size(c.oid)), 0)::float8 as table_bytes,
       coalesce(sum(pg_indexes_size(c.oid)), 0)::float8 as index_bytes
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname = $1 and c.relkind = 'r'`;
