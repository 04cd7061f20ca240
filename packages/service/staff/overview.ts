/**
 * The state of a service: its samples of the last hour, its engines, and the problems that need an operator, each with its cure.
 * It is read once in `keptMs` at most, however many operators look at it, and never counts a live table beyond a bound.
 */
import { named, oneOf, orNull } from "@todoke/contracts/api";
import { guarded } from "@todoke/http";
import { type AuditFinding, perRuleMax, readLastAudit } from "@todoke/kernel/audit";
import { type Delays, delayCountMax } from "@todoke/kernel/claims";
import type { Db, Queryable } from "@todoke/kernel/db";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import { type Static, Type } from "typebox";
import type { Health } from "../health.ts";
import { type StaffRouteDeps, viewers } from "./deps.ts";
import { mergeSamples } from "./merge-samples.ts";
import { recentlyRead } from "./recently-read.ts";
import { selectSamples } from "./sample-store.ts";

const orNullNumber = orNull(Type.Number());

export const ServiceOverview = named("ServiceOverview", {
  service: Type.String(),
  ready: Type.Boolean(),
  engines: Type.Array(named("EngineHealth", { name: Type.String(), ok: Type.Boolean() })),
  processes: Type.Integer({ description: "Processes that sampled the last minute." }),
  samples: Type.Array(
    named("MinuteSample", {
      minute: Type.String({ format: "date-time" }),
      requests: Type.Integer(),
      errors: Type.Integer({ description: "Responses with 5xx." }),
      p50_ms: orNullNumber,
      p99_ms: orNullNumber,
      backlog: orNullNumber,
      oldest_age_s: orNullNumber,
      dead: orNullNumber,
    }),
    { description: "The last hour, oldest first. A minute without a sample is missing." },
  ),
});

export const Need = named("Need", {
  service: Type.String(),
  kind: oneOf(["unready", "dead", "parked", "in-doubt", "audit", "late", "failing"]),
  table: orNull(Type.String()),
  count: Type.Integer(),
  capped: Type.Boolean({ description: "True if there may be more." }),
  detail: Type.String(),
  cure: named("Cure", { text: Type.String(), href: orNull(Type.String({ description: "A page of the console." })) }),
});
export type Need = Static<typeof Need>;

const View = named("ServiceOverviewAnswer", { overview: ServiceOverview, needs: Type.Array(Need) });
type View = Static<typeof View>;

export interface OverviewSource {
  readonly service: string;
  readonly reads: Db;
  readonly deadLetters: readonly DeadLetters[];
  readonly health: Pick<Health, "report">;
  /** Rows that users wait for. */
  readonly delays: (db: Queryable) => Promise<readonly Delays[]>;
  /** Other problems that need an operator. */
  readonly needs?: ((db: Queryable) => Promise<readonly Need[]>) | undefined;
}

// Too short for an operator to notice.
const keptMs = 2_000;

export const overviewReader = (source: OverviewSource): (() => Promise<View>) =>
  recentlyRead(keptMs, () => readOverview(source));

export function overviewRoute({ app, prefix, authenticate, hide }: StaffRouteDeps, read: () => Promise<View>): void {
  app.get(
    `${prefix}/overview`,
    guarded(authenticate, viewers, {
      hide,
      passesOnRefusals: hide,
      operationId: "getServiceOverview",
      summary: "Get an overview of the service",
      tags: ["Operations"],
      description: "Returns the samples of the last hour, the engines, and the problems that need an operator.",
      response: { 200: View },
    }),
    read,
  );
}

async function readOverview(source: OverviewSource): Promise<View> {
  const { service, reads, health } = source;
  const [stored, report, needs] = await Promise.all([selectSamples(reads), health.report(), readNeeds(source)]);
  const samples = mergeSamples(stored);
  const lastMinute = samples.at(-1)?.minute;
  const engines = report.checks.filter(({ name }) => name !== "event-loop").map(({ name, ok }) => ({ name, ok }));
  const ready = report.status === "ready" || report.status === "degraded";
  const unreachable = engines.filter(({ ok }) => !ok).map(({ name }) => name);
  return {
    overview: {
      service,
      ready,
      engines,
      processes: stored.filter(({ minute }) => minute === lastMinute).length,
      samples,
    },
    needs: [...(ready && unreachable.length === 0 ? [] : [unreadyNeed(service, unreachable)]), ...needs],
  };
}

const unreadyNeed = (service: string, unreachable: readonly string[]): Need => ({
  service,
  kind: "unready",
  table: null,
  count: 1,
  capped: false,
  detail: unreachable.length > 0 ? `${unreachable.join(" and ")} cannot be reached` : "a process is not ready",
  cure: { text: `Check that it runs and can be reached, and read the log of ${service}.`, href: null },
});

async function readNeeds({ service, reads, deadLetters, delays, needs }: OverviewSource): Promise<Need[]> {
  const found: Need[] = [];
  for (const table of deadLetters) {
    const count = await table.count(reads, delayCountMax);
    if (count > 0) found.push(deadNeed(service, table.name, count));
  }
  for (const each of await delays(reads)) found.push(...delayNeeds(service, each));
  return [...found, ...((await needs?.(reads)) ?? []), ...(await readViolations(reads, service))];
}

/** What the last audit found, a line for each broken rule. */
async function readViolations(reads: Db, service: string): Promise<Need[]> {
  const { findings = [], finished_at } = (await readLastAudit(reads, service)) ?? {};
  return [...Map.groupBy(findings, ({ rule }) => rule)].map(([rule, broken]) =>
    violationNeed(service, { rule, broken, finishedAt: finished_at ?? "" }),
  );
}

interface Violation {
  readonly rule: string;
  readonly broken: readonly AuditFinding[];
  readonly finishedAt: string;
}

function violationNeed(service: string, { rule, broken, finishedAt }: Violation): Need {
  const { about = "", detail = "" } = broken[0] ?? {};
  return {
    service,
    kind: "audit",
    table: null,
    count: broken.length,
    capped: broken.length >= perRuleMax,
    detail: `broken at ${finishedAt}: ${rule}. For example ${about}: ${detail}`,
    cure: {
      text: `See what happened to it and repair the cause. Then run todoke audit ${service}: it lists all violations.`,
      href: `/console/why?id=${encodeURIComponent(about)}`,
    },
  };
}

const isCapped = (count: number) => count >= delayCountMax;
const deadPage = (service: string, table: string) => `/console/dead?service=${service}&table=${table}`;

const deadNeed = (service: string, table: string, count: number): Need => ({
  service,
  kind: "dead",
  table,
  count,
  capped: isCapped(count),
  detail: "dead letters: they are retried no more",
  cure: { text: "Fix the cause, then redrive or discard them.", href: deadPage(service, table) },
});

function delayNeeds(service: string, { table, late, oldestMs, failing, lastError, parked }: Delays): Need[] {
  const need = (kind: Need["kind"], count: number, detail: string, cure: Need["cure"]): Need[] =>
    count > 0 ? [{ service, kind, table, count, capped: isCapped(count), detail, cure }] : [];
  return [
    ...need("parked", parked, "aggregates are parked: later events wait behind a dead letter", {
      text: "Redrive it, or discard it.",
      href: deadPage(service, table),
    }),
    ...need("late", late, `rows are late, the oldest by ${Math.round(oldestMs / 1_000)} s`, {
      text: `Check that a process of ${service} with all its roles runs and is ready, and read its log.`,
      href: null,
    }),
    ...need("failing", failing, `rows failed three times or more: ${lastError ?? "no error recorded"}`, {
      text: "Fix the cause. They are retried, and become dead letters at the last attempt.",
      href: null,
    }),
  ];
}
