/**
 * The audit: rules that hold between the tables of a service, checked on a live database. All rules are one statement, which reads
 * one snapshot: it sees concurrent transactions completely or not at all, takes no lock that a command waits for, and changes
 * nothing. It also counts rows, so that "no findings" cannot mean an empty table.
 */
import { type Db, type Queryable, transaction } from "../db/index.ts";

export { type PublishedEvent, selectPublished, selectUnprocessed } from "./deliveries.ts";
export { eventExists, type KernelAudited, kernelAudit } from "./kernel-rules.ts";
export { type AuditResult, auditsTable, type LastAudit, readLastAudit, startAudits } from "./schedule.ts";

export interface AuditFinding {
  /** The broken rule. */
  readonly rule: string;
  /** The key of the row, or the user, that breaks it. */
  readonly about: string;
  readonly detail: string;
}

export interface Audit {
  /** Row counts. */
  readonly checked: Readonly<Record<string, number>>;
  readonly rules: readonly string[];
  /** At most `perRuleMax` per rule. */
  readonly findings: readonly AuditFinding[];
}

/** The rules of a set of tables. */
export interface AuditSpec {
  /** The rows to count: their name in the plural, and a FROM item that selects them. */
  readonly checked: Readonly<Record<string, string>>;
  /** Common table expressions that several rules read: "posted as materialized (…)". */
  readonly shared?: readonly string[];
  /**
   * Each rule, a sentence, with a query for the rows that break it: `about` and `detail`, both text. `(select since from kept)` is the
   * time since which published events are kept.
   */
  readonly rules: Readonly<Record<string, string>>;
}

// Enough to find the cause.
export const perRuleMax = 20;

export interface AuditOptions {
  /** How long published events are kept. */
  readonly keptMs: number;
}

const quote = (text: string) => `'${text.replaceAll("'", "''")}'`;

function auditSql(specs: readonly AuditSpec[]): string {
  const rules = specs.flatMap((spec) => Object.entries(spec.rules));
  const counts = specs.flatMap((spec) => Object.entries(spec.checked));
  return `
with ${["kept as (select now() - $1::float8 * interval '1 millisecond' as since)", ...specs.flatMap(({ shared = [] }) => shared)].join(",\n")}
select json_build_object(${counts.map(([name, from]) => `${quote(name)}, (select count(*) from ${from})`).join(", ")}) as checked,
       (select coalesce(json_agg(f), '[]') from (
  ${rules
    .map(([rule, broken]) => `select ${quote(rule)} as rule, about, detail from (${broken} limit ${perRuleMax}) b`)
    .join("\n  union all\n  ")}) f) as findings`;
}

/** For the small tables of tests; use `auditLive` for tables of any size. */
export async function audit(db: Queryable, specs: readonly AuditSpec[], { keptMs }: AuditOptions): Promise<Audit> {
  const { rows } = await db.query<Omit<Audit, "rules">>(auditSql(specs), [keptMs]);
  const [row] = rows;
  if (!row) throw new Error("The audit returned no row.");
  return { ...row, rules: specs.flatMap(({ rules }) => Object.keys(rules)) };
}

/** Reads whole tables, so the pool needs a long statement timeout. Allows table scans, which are off otherwise (ADR 3). */
export const auditLive = (db: Db, specs: readonly AuditSpec[], options: AuditOptions): Promise<Audit> =>
  transaction(db, async (tx) => {
    await tx.query(
      `set transaction isolation level repeatable read, read only; set local enable_seqscan = on; set local enable_bitmapscan = on`,
    );
    return audit(tx, specs, options);
  });
