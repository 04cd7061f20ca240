/** Simulates the current rules of a mode with generated players, for staff. */

import { problems } from "@todoke/http";
import { digestJson } from "@todoke/kernel/idempotency";
import { simulationTooLarge } from "../problems.ts";
import type { ModeRules, Rules } from "../rules/index.ts";
import type { PlayerOptions } from "../simulator/index.ts";
import { runInThread, type SimulationResult } from "../simulator/run-in-thread.ts";

export interface SimulateModeDeps {
  readonly rules: () => Rules;
  readonly rulesOf: (mode: string) => ModeRules;
  readonly timeoutMs?: number;
}

export interface Simulation extends SimulationResult {
  readonly rulesVersion: string;
}

// A simulation takes a core. The gateway waits a little longer.
const defaultTimeoutMs = 5_000;

/** One at a time per process. Who asks the same meanwhile gets the same answer. */
export function simulateMode({ rules, rulesOf, timeoutMs = defaultTimeoutMs }: SimulateModeDeps) {
  let running: { readonly question: string; readonly result: Promise<Simulation> } | undefined;

  return async (mode: string, players: PlayerOptions): Promise<Simulation> => {
    const found = rulesOf(mode);
    const { version: rulesVersion } = rules();
    const question = digestJson({ mode, rulesVersion, players }).toString("hex");
    if (running && running.question !== question)
      throw problems.rateLimited("another simulation runs in this process; try again in 1 s", { retryAfterSeconds: 1 });
    if (running) return running.result;
    const result = run({ rules: found, players, rulesVersion });
    running = { question, result };
    try {
      return await result;
    } finally {
      running = undefined;
    }
  };

  async function run({ rulesVersion, ...input }: RunInput): Promise<Simulation> {
    const result = await runInThread(input, { timeoutMs });
    if (result) return { rulesVersion, ...result };
    throw simulationTooLarge("use fewer players, or fewer per second; `todoke match simulate` has no such bound");
  }
}

interface RunInput {
  readonly rules: ModeRules;
  readonly players: PlayerOptions;
  readonly rulesVersion: string;
}
