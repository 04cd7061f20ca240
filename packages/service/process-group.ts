/**
 * The processes of one command (`todoke serve --processes 4`). A probe or a scrape reaches any of them, and its response is about
 * all: the process that was asked asks the others through their parent.
 */
import type { MetricData } from "@opentelemetry/sdk-metrics";
import type { ReadinessReport } from "./readiness.ts";

/** The questions to a process, and its answers. */
export interface GroupAnswers {
  readonly metrics: readonly MetricData[];
  readonly readiness: ReadinessReport;
  readonly liveness: true;
}

export type GroupQuestion = keyof GroupAnswers;

export interface GroupAnswer<Question extends GroupQuestion> {
  /** The number of the process; 0 for the totals of processes that have exited. */
  readonly process: number;
  /** Undefined if the process did not respond in time. */
  readonly answer: GroupAnswers[Question] | undefined;
}

export interface ProcessGroup {
  /** The number of this process, from 1. */
  readonly number: number;
  /** Asks every running process, this one too. `of` is the service, for questions that each service answers for itself. */
  ask<Question extends GroupQuestion>(question: Question, of?: string): Promise<readonly GroupAnswer<Question>[]>;
  /** How this process responds. */
  onQuestion<Question extends GroupQuestion>(
    question: Question,
    answer: () => Promise<GroupAnswers[Question]>,
    of?: string,
  ): void;
}

/** From the best to the worst. */
const statuses = ["ready", "degraded", "not-ready", "stopping"] as const;

/** As ready as the worst of the running processes. A process that does not respond is a failed check of its own. */
export async function groupReadiness(group: ProcessGroup, service: string): Promise<ReadinessReport> {
  const answers = await group.ask("readiness", service);
  const reports = answers.flatMap(({ answer }) => answer ?? []);
  const checks = new Map<string, ReadinessReport["checks"][number]>();
  for (const check of reports.flatMap((report) => report.checks)) {
    const { ok = true, ms = 0 } = checks.get(check.name) ?? {};
    checks.set(check.name, { ...check, ok: ok && check.ok, ms: Math.max(ms, check.ms) });
  }
  const silent = findSilent(answers).map((number) => ({ name: `process-${number}`, ok: false, ms: 0 }));
  const found = [...reports.map(({ status }) => status), ...silent.map(() => "not-ready" as const)];
  const worst = statuses.findLast((status) => found.includes(status)) ?? "not-ready";
  return { status: worst, checks: [...checks.values(), ...silent] };
}

/** The processes that did not respond. */
export const findSilent = (answers: readonly GroupAnswer<GroupQuestion>[]): readonly number[] =>
  answers.flatMap(({ process, answer }) => (answer === undefined ? [process] : []));
