/**
 * The rules that hold now. A change of their file is taken within about a second, without a restart.
 *
 * A service whose file is bad does not start. Later a bad file is refused and told once, with its lines, and the rules
 * before it stay; so does a file that is gone. The file is looked at rather than watched: that also sees a file that was
 * replaced by an editor, and a ConfigMap, where a symbolic link somewhere above it is what changes.
 */
import { readFile, stat } from "node:fs/promises";
import { basename } from "node:path";
import { periodically } from "@todoke/kernel/worker";
import { RulesFaulty, readRules } from "./read-rules.ts";
import type { Rules } from "./types.ts";

export interface LiveRulesOptions {
  /** Without it the built-in rules hold, and never change. */
  readonly path?: string | undefined;
  /** Hears of rules that hold from now on. */
  readonly onChange?: (rules: Rules) => void;
  /** Hears of a change that was refused: a `RulesFaulty`, or why the file could not be read. */
  readonly onError?: (error: unknown) => void;
  readonly everyMs?: number;
}

export interface LiveRules extends AsyncDisposable {
  current(): Rules;
  /** Looks at the file now. */
  look(): Promise<void>;
}

const builtInUrl = new URL("built-in.yaml", import.meta.url);

export const builtInRules = async (): Promise<Rules> => readRules(await readFile(builtInUrl, "utf8"), "built-in.yaml");

export const readRulesFile = async (path: string): Promise<Rules> =>
  readRules(await readFile(path, "utf8"), basename(path));

/** Throws `RulesFaulty`, or what the system says where the file cannot be read. */
export async function openRules({ path, onChange, onError, everyMs = 1_000 }: LiveRulesOptions): Promise<LiveRules> {
  if (path === undefined) {
    const rules = await builtInRules();
    return { current: () => rules, look: async () => {}, [Symbol.asyncDispose]: async () => {} };
  }
  // Before the file is read: what is written in between is then seen as a change, and read again.
  let seen = await markOf(path);
  let current = await readRulesFile(path);
  let told = "";
  const look = async () => {
    const mark = await markOf(path);
    if (mark === seen) return;
    const rules = await readRulesFile(path).catch((error: unknown) => {
      // A file with faults is read again when it changes, one that the system refuses each time; either is told once.
      if (error instanceof RulesFaulty) seen = mark;
      else if (String(error) === told) return undefined;
      told = String(error);
      throw error;
    });
    if (rules === undefined) return;
    seen = mark;
    told = "";
    if (rules.version === current.version) return;
    current = rules;
    onChange?.(rules);
  };
  const what = `loading ${basename(path)}`;
  const looking = periodically(look, { everyMs, what, ...(onError && { onError }) });
  return {
    current: () => current,
    look,
    [Symbol.asyncDispose]: () => looking[Symbol.asyncDispose](),
  };
}

/** What differs between two versions of a file; of one that is not there, why. */
async function markOf(path: string): Promise<string> {
  try {
    const { mtimeNs, size, ino, dev } = await stat(path, { bigint: true });
    return [mtimeNs, size, ino, dev].join();
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : "unknown";
  }
}
