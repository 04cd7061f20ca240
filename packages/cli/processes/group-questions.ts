/** The parent's side of questions to all processes: it passes them on, and keeps the totals of processes that have exited. */
import type { GroupAnswer, GroupAnswers, GroupQuestion } from "@todoke/service";
import { mergeMetrics, onlyTotals } from "@todoke/service";
import type { ToProcess } from "./messages.ts";

/** A running process, as questions see it. */
export interface Asked {
  readonly number: number;
  send(message: ToProcess): void;
}

// Readiness checks take at most a second.
const answerMaxMs = 2_000;

interface Question {
  readonly waitingFor: Set<Asked>;
  readonly answers: Map<Asked, unknown>;
  readonly all: PromiseWithResolvers<void>;
}

export class GroupQuestions {
  readonly #questions = new Map<number, Question>();
  readonly #lastMetrics = new WeakMap<Asked, GroupAnswers["metrics"]>();
  #totals: GroupAnswers["metrics"] = [];
  #lastId = 0;

  async ask(processes: readonly Asked[], question: GroupQuestion, of?: string): Promise<GroupAnswer<GroupQuestion>[]> {
    const id = ++this.#lastId;
    const asked: Question = {
      waitingFor: new Set(processes),
      answers: new Map(),
      all: Promise.withResolvers(),
    };
    this.#questions.set(id, asked);
    for (const each of processes) each.send({ kind: "ask", id, question, of });
    const deadline = setTimeout(asked.all.resolve, answerMaxMs);
    await asked.all.promise;
    clearTimeout(deadline);
    this.#questions.delete(id);
    for (const silent of asked.waitingFor) asked.answers.set(silent, undefined);
    const answers = [...asked.answers].map(([each, answer]) => ({ process: each.number, answer }));
    if (question === "metrics") {
      for (const [each, metrics] of asked.answers) this.#rememberMetrics(each, metrics as GroupAnswers["metrics"]);
      answers.push({ process: 0, answer: this.#totals });
    }
    return answers as GroupAnswer<GroupQuestion>[];
  }

  answer(from: Asked, { id, answer }: { readonly id: number; readonly answer: unknown }): void {
    const question = this.#questions.get(id);
    if (!question?.waitingFor.has(from)) return;
    question.answers.set(from, answer);
    this.#stopWaiting(question, from);
  }

  /** Questions no longer wait for it. Its counters of the last scrape stay in the sums. */
  onGone(gone: Asked): void {
    for (const question of this.#questions.values()) this.#stopWaiting(question, gone);
    const metrics = this.#lastMetrics.get(gone);
    if (metrics) this.#totals = mergeMetrics([this.#totals, onlyTotals(metrics)]);
  }

  #stopWaiting({ waitingFor, all }: Question, from: Asked): void {
    waitingFor.delete(from);
    if (waitingFor.size === 0) all.resolve();
  }

  #rememberMetrics(from: Asked, metrics: GroupAnswers["metrics"] | undefined): void {
    if (metrics) this.#lastMetrics.set(from, metrics);
  }
}
