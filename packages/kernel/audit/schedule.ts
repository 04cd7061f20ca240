/**
 * Runs the audit of a service at an interval. The row in `audits` lets one of its processes run it; every process reports the
 * findings. If that process dies, the next audit starts an interval later.
 */
import { type Db, type Queryable, rfc3339Sql, runStatement } from "../db/index.ts";
import { observeGauges } from "../telemetry/index.ts";
import { startLoop } from "../worker/index.ts";
import type { Audit, AuditFinding } from "./index.ts";

export const auditsTable = "audits";

export type AuditResult = Pick<Audit, "findings">;

export interface AuditsOptions {
  readonly db: Db;
  /** The service. */
  readonly name: string;
  readonly intervalMs: number;
  readonly run: () => Promise<AuditResult>;
  readonly onViolations?: (findings: readonly AuditFinding[]) => void;
  readonly onError?: (error: unknown) => void;
}

/** How often a process checks whether an audit is due. The jitter of the loop spreads the audits of several services. */
const checkIntervalMs = 10 * 60 * 1_000;

export function startAudits(options: AuditsOptions): AsyncDisposable {
  const { db, name, intervalMs, onError } = options;
  const gauge = "todoke.audit.violations.current";
  const observed = observeGauges({
    gauges: [gauge],
    async read() {
      const last = await readLastAudit(db, name);
      return last?.finished_at ? [{ name: gauge, value: last.violations, attributes: { service: name } }] : [];
    },
    ...(onError && { onError }),
  });
  const loop = startLoop((stopping) => untilStopped(auditInTurn(options), stopping), {
    intervalMs: Math.min(checkIntervalMs, intervalMs),
    task: `auditing ${name}`,
    ...(onError && { onError }),
  });
  return {
    async [Symbol.asyncDispose]() {
      await loop[Symbol.asyncDispose]();
      await observed[Symbol.asyncDispose]();
    },
  };
}

/** An audit may read for minutes, and changes nothing: a stop does not wait for it. */
async function untilStopped(work: Promise<unknown>, stopping: AbortSignal): Promise<void> {
  const stopped = Promise.withResolvers<void>();
  const onAbort = () => stopped.resolve();
  stopping.addEventListener("abort", onAbort, { once: true });
  try {
    await Promise.race([work, stopped.promise]);
  } finally {
    stopping.removeEventListener("abort", onAbort);
  }
}

/** Runs the audit if the interval since the last start has passed. Returns whether it ran. */
export async function auditInTurn({ db, name, intervalMs, run, onViolations }: AuditsOptions): Promise<boolean> {
  const { rowCount } = await runStatement(db, {
    name: "take audit turn",
    text: `update audits set started_at = clock_timestamp()
            where name = $1 and started_at <= clock_timestamp() - $2::float8 * interval '1 millisecond'`,
    values: [name, intervalMs],
  });
  if (rowCount === 0) {
    // The first audit comes an interval after the first start: a new deployment has nothing to audit.
    await runStatement(db, {
      name: "begin audits",
      text: `insert into audits (name, started_at) values ($1, clock_timestamp()) on conflict do nothing`,
      values: [name],
    });
    return false;
  }
  const { findings } = await run();
  await runStatement(db, {
    name: "record audit",
    text: `update audits set finished_at = clock_timestamp(), violations = $2, findings = $3 where name = $1`,
    values: [name, findings.length, JSON.stringify(findings)],
  });
  if (findings.length > 0) onViolations?.(findings);
  return true;
}

export interface LastAudit {
  readonly started_at: string;
  readonly finished_at: string | null;
  readonly violations: number;
  readonly findings: readonly AuditFinding[];
}

/** The last audit of a service; undefined before its first start. */
export async function readLastAudit(db: Queryable, name: string): Promise<LastAudit | undefined> {
  const { rows } = await db.query<LastAudit>(
    `select ${rfc3339Sql("started_at")} as started_at, ${rfc3339Sql("finished_at")} as finished_at, violations, findings
       from audits where name = $1`,
    [name],
  );
  return rows[0];
}
