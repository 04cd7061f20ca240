/** Reads the rules of --rules, or the built-in ones. */

import { builtInRules, type ModeRules, type Rules, RulesError, readRulesFile } from "@todoke/matchmaking/rules";
import { CommandFailed, SettingsError, UsageError } from "../errors.ts";
import { suggest } from "../suggest.ts";

/** Throws SettingsError with all errors of the file and their lines. */
export async function readRules(path: string | undefined): Promise<Rules> {
  try {
    return await (path === undefined ? builtInRules() : readRulesFile(path));
  } catch (error) {
    if (error instanceof RulesError) throw new SettingsError(error.errors);
    if (error instanceof Error && "code" in error) throw new CommandFailed(`${path} cannot be read: ${error.message}`);
    throw error;
  }
}

/** The named mode; all if none is named. */
export function selectModes({ modes }: Rules, name: string | undefined): readonly ModeRules[] {
  if (name === undefined) return [...modes.values()];
  const mode = modes.get(name);
  if (mode) return [mode];
  const known = [...modes.keys()];
  throw new UsageError(`The rules have no mode "${name}".${suggest(name, known) || ` Modes: ${known.join(", ")}.`}`);
}
