/**
 * All modes in which somebody may wait, or an end may still have to be recorded: those of the rules, and those that left
 * them within a week, also before this process began and in the rules of another.
 */
import type { Db } from "@todoke/kernel/db";
import { periodically } from "@todoke/kernel/worker";
import type { Rules } from "./rules/index.ts";
import { noteModes } from "./store/modes.ts";

export interface KnownModes extends AsyncDisposable {
  all(): readonly string[];
}

export interface KnownModesOptions {
  readonly db: Db;
  readonly rules: () => Rules;
  readonly onError: (error: unknown) => void;
  readonly everyMs?: number;
}

/** Resolves once those from before are known. */
export async function openKnownModes({ db, rules, onError, everyMs = 60_000 }: KnownModesOptions): Promise<KnownModes> {
  // What this process' rules had is known at once, whether the database can be asked or not.
  const seen = new Set<string>();
  let noted: readonly string[] = [];
  const note = async () => {
    noted = await noteModes(db, [...rules().modes.keys()]);
  };
  await note();
  const noting = periodically(note, { everyMs, what: "noting the modes", onError });
  return {
    all() {
      for (const mode of rules().modes.keys()) seen.add(mode);
      return [...seen.union(new Set(noted))];
    },
    [Symbol.asyncDispose]: () => noting[Symbol.asyncDispose](),
  };
}
