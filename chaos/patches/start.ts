/**
 * How to start a program with failpoints, a planted defect or a wrong clock. `npm test` builds programs that have every
 * failpoint; without a build, and with a planted defect, the sources are patched as they are loaded.
 */
import { fileURLToPath } from "node:url";
import { findBuiltProgram } from "@todoke/kernel/testing";

export interface Start {
  /** Options of Node, for `fork` and `spawn`. */
  readonly execArgv: readonly string[];
  readonly program: string;
}

const instrument = new URL("./instrument.ts", import.meta.url).href;
const instrumentBuilt = new URL("./instrument-built.ts", import.meta.url).href;

/** `env` is the environment of the process, with the settings that ./instrument.ts reads. */
export function startInstrumented(source: URL, env: Readonly<Record<string, string>>): Start {
  const variant = env.CHAOS_CLAIMS_ONLY === "true" ? "claims-only" : "failpoints";
  const built = env.CHAOS_PLANTED === undefined ? findBuiltProgram(source, variant) : undefined;
  return built
    ? { execArgv: ["--import", instrumentBuilt], program: built }
    : { execArgv: ["--import", instrument], program: fileURLToPath(source) };
}
