/**
 * Makes matches: one loop per process over all modes.
 *
 * A mode runs when a user has joined it, when something in it is due, and at the latest after a few seconds. So an idle queue
 * costs almost nothing, and a lost wake-up costs latency only. Any number of processes can run this: the queue decides who is
 * matched; the matcher decides when to run. An error in one mode is reported and retried with backoff, and does not delay the
 * other modes. A stop waits for the run in progress.
 */
import { backoffMs, startLoop, type Wakeups } from "@todoke/kernel/worker";
import type { Rules } from "../rules/types.ts";
import { createModeMatcher, defaultIdleMs, type ModeMatcher, type ModeMatcherOptions } from "./mode-matcher.ts";

export interface MatcherOptions extends ModeMatcherOptions {
  readonly rules: () => Rules;
  /** The modes of the rules, and former modes that may still have waiting tickets. */
  readonly modes: () => readonly string[];
  readonly wakeups: Pick<Wakeups, "on">;
  /** The wake-up topic for joins of a mode. */
  readonly topicOf: (mode: string) => string;
  readonly onError: (error: unknown) => void;
}

export interface Matcher extends AsyncDisposable {
  /** Runs every mode now, because the rules have changed. */
  wake(): void;
}

const retryBackoff = { baseMs: 50, capMs: defaultIdleMs };

interface MatchedMode {
  readonly matcher: ModeMatcher;
  readonly unsubscribe: () => void;
  failures: number;
  /** A wake-up does not shorten the backoff. */
  pausedUntil: number;
}

const dueAt = ({ matcher, pausedUntil }: MatchedMode) => Math.max(matcher.dueAt, pausedUntil);

export function startMatcher({ rules, modes, wakeups, topicOf, onError, ...options }: MatcherOptions): Matcher {
  const matched = new Map<string, MatchedMode>();

  function add(mode: string): void {
    const matcher = createModeMatcher(mode, options);
    const unsubscribe = wakeups.on(topicOf(mode), () => {
      matcher.wake();
      loop.wake();
    });
    matched.set(mode, { matcher, unsubscribe, failures: 0, pausedUntil: 0 });
  }

  async function runOnce(mode: string, state: MatchedMode): Promise<void> {
    const current = rules();
    try {
      await state.matcher.runOnce({ rules: current.modes.get(mode), version: current.version });
      state.failures = 0;
    } catch (cause) {
      state.pausedUntil = performance.now() + backoffMs(++state.failures, retryBackoff);
      onError(new Error(`making matches in ${mode} failed`, { cause }));
    }
  }

  async function runDue(stopping: AbortSignal, nextIn: (ms: number) => void): Promise<void> {
    for (const mode of modes()) if (!matched.has(mode)) add(mode);
    for (const [mode, state] of matched)
      if (!stopping.aborted && dueAt(state) <= performance.now()) await runOnce(mode, state);
    const nextAt = Math.min(...[...matched.values()].map(dueAt));
    nextIn(Math.min(defaultIdleMs, Math.max(0, nextAt - performance.now())));
  }

  const loop = startLoop(runDue, { intervalMs: defaultIdleMs, task: "making matches", onError });
  return {
    wake() {
      for (const { matcher } of matched.values()) matcher.wake();
      loop.wake();
    },
    async [Symbol.asyncDispose]() {
      for (const { unsubscribe } of matched.values()) unsubscribe();
      await loop[Symbol.asyncDispose]();
    },
  };
}
