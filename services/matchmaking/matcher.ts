/**
 * Makes matches: one loop per process over all modes, for as long as the process runs.
 *
 * A mode is looked at when somebody has joined it, when something in it comes due, and at the latest after a few seconds;
 * so an idle queue costs next to nothing, and a lost wake-up costs latency only. Any number of processes do this at once:
 * the queue decides who is matched, and here is only decided when to ask. What fails in one mode is told and tried again,
 * less and less often, and holds up no other. A stop lets the look under way end.
 */
import { backoffMs, latch, type Wakeups } from "@todoke/kernel/worker";
import { type ModeWatch, usualIdleMs, type WatchOptions, watchMode } from "./mode-watch.ts";
import type { Rules } from "./rules/types.ts";

export interface MatcherOptions extends WatchOptions {
  readonly rules: () => Rules;
  /** Those of the rules, and those that have left them and may still have somebody waiting. */
  readonly modes: () => readonly string[];
  readonly wakeups: Pick<Wakeups, "on">;
  /** What is signalled when somebody has joined a mode. */
  readonly topicOf: (mode: string) => string;
  readonly onError: (error: unknown) => void;
}

export interface Matcher extends AsyncDisposable {
  /** Has every mode looked at now: the rules have changed. */
  wake(): void;
}

// A failure is tried again after this, then less often, down to every few seconds.
const failureBackoff = { baseMs: 50, capMs: usualIdleMs };

interface Watched extends ModeWatch {
  readonly forget: () => void;
  failures: number;
  /** Not before this, whoever joins: it has just failed. */
  restUntil: number;
}

const dueAt = ({ lookAt, restUntil }: Watched) => Math.max(lookAt, restUntil);

export function keepMatching({ rules, modes, wakeups, topicOf, onError, ...about }: MatcherOptions): Matcher {
  const watched = new Map<string, Watched>();
  const rung = latch();
  let stopping = false;

  function watch(mode: string): void {
    const state = watchMode(mode, about);
    const forget = wakeups.on(topicOf(mode), () => {
      state.wake();
      rung.open();
    });
    watched.set(mode, Object.assign(state, { forget, failures: 0, restUntil: 0 }));
  }

  async function look(mode: string, state: Watched): Promise<void> {
    const current = rules();
    try {
      await state.look({ rules: current.modes.get(mode), version: current.version });
      state.failures = 0;
    } catch (cause) {
      state.restUntil = performance.now() + backoffMs(++state.failures, failureBackoff);
      onError(new Error(`making matches in ${mode} failed`, { cause }));
    }
  }

  async function run(): Promise<void> {
    while (!stopping) {
      rung.close();
      for (const mode of modes()) if (!watched.has(mode)) watch(mode);
      for (const [mode, state] of watched) if (!stopping && dueAt(state) <= performance.now()) await look(mode, state);
      const nextAt = Math.min(performance.now() + usualIdleMs, ...[...watched.values()].map(dueAt));
      if (!stopping) await rung.wait(Math.max(0, nextAt - performance.now()));
    }
  }

  const running = run();
  return {
    wake() {
      for (const state of watched.values()) state.wake();
      rung.open();
    },
    async [Symbol.asyncDispose]() {
      stopping = true;
      for (const { forget } of watched.values()) forget();
      rung.open();
      await running;
    },
  };
}
