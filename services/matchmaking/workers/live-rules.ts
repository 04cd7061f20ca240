/**
 * The current rules. A change of the file takes effect within about a second, without a restart.
 *
 * With an invalid file the service does not start. Later, an invalid or missing file is reported once and the current rules
 * stay. The file is polled, not watched: polling also notices a file that an editor has replaced, and a ConfigMap, where a
 * symbolic link in a parent folder changes.
 */
import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { startLoop } from "@todoke/kernel/worker";
import { builtInRules, type Rules, RulesError, readRulesFile } from "../rules/index.ts";

export interface LiveRulesOptions {
  /** Undefined for the built-in rules, which never change. */
  readonly path?: string | undefined;
  readonly onChange?: (rules: Rules) => void;
  /** Called with a rejected change: a `RulesError`, or the error of reading the file. */
  readonly onError?: (error: unknown) => void;
  readonly intervalMs?: number;
}

export interface LiveRules extends AsyncDisposable {
  current(): Rules;
  /** Checks the file now. */
  reload(): Promise<void>;
}

/** Throws `RulesError`, or the error of reading the file. */
export async function openLiveRules(options: LiveRulesOptions): Promise<LiveRules> {
  const { path, onChange, onError, intervalMs = 1_000 } = options;
  if (path === undefined) {
    const rules = await builtInRules();
    return { current: () => rules, reload: async () => {}, [Symbol.asyncDispose]: async () => {} };
  }
  // Taken before the file is read: a write in between then counts as a change.
  let fingerprint = await readFingerprint(path);
  let current = await readRulesFile(path);
  let reportedError = "";
  const reload = async () => {
    const latest = await readFingerprint(path);
    if (latest === fingerprint) return;
    const rules = await readRulesFile(path).catch((error: unknown) => {
      // Invalid rules are read again when the file changes, an unreadable file every time; either is reported once.
      if (error instanceof RulesError) fingerprint = latest;
      else if (String(error) === reportedError) return undefined;
      reportedError = String(error);
      throw error;
    });
    if (rules === undefined) return;
    fingerprint = latest;
    reportedError = "";
    if (rules.version === current.version) return;
    current = rules;
    onChange?.(rules);
  };
  const what = `loading ${basename(path)}`;
  const polling = startLoop(reload, { intervalMs, task: what, ...(onError && { onError }) });
  return {
    current: () => current,
    reload,
    [Symbol.asyncDispose]: () => polling[Symbol.asyncDispose](),
  };
}

/** Differs between two versions of a file; for an unreadable file, its error code. */
async function readFingerprint(path: string): Promise<string> {
  try {
    const { mtimeNs, size, ino, dev } = await stat(path, { bigint: true });
    return [mtimeNs, size, ino, dev].join();
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : "unknown";
  }
}
