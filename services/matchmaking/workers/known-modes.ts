/**
 * The modes that may have waiting tickets or unrecorded ends: those of the rules, and those that any process had in its rules
 * within the last week. A worker records the modes of this process every minute.
 */
import type { Db } from "@todoke/kernel/db";
import { startLoop } from "@todoke/kernel/worker";
import type { Rules } from "../rules/index.ts";
import { recordModes } from "../store/modes.ts";

export interface KnownModes extends AsyncDisposable {
  all(): readonly string[];
}

export interface KnownModesOptions {
  readonly db: Db;
  readonly rules: () => Rules;
  readonly onError: (error: unknown) => void;
}

const intervalMs = 60_000;

/** Resolves when the stored modes are read. */
export async function openKnownModes({ db, rules, onError }: KnownModesOptions): Promise<KnownModes> {
  // The modes of this process' rules are known at once, even if the database is unavailable.
  const own = new Set<string>();
  let stored: readonly string[] = [];
  const record = async () => {
    stored = await recordModes(db, [...rules().modes.keys()]);
  };
  await record();
  const recording = startLoop(record, { intervalMs, task: "recording the modes", onError });
  return {
    all() {
      for (const mode of rules().modes.keys()) own.add(mode);
      return [...own.union(new Set(stored))];
    },
    [Symbol.asyncDispose]: () => recording[Symbol.asyncDispose](),
  };
}
