/** The rules that a call is about: those of --rules, or the built-in ones. */

import { closestMatch } from "@todoke/http/closest-match";
import { builtInRules, type ModeRules, type Rules, RulesError, readRulesFile } from "@todoke/matchmaking/rules";
import { CommandFailed, Misconfigured, Misused } from "../faults.ts";

/** Throws with every fault of the file, each with its line. */
export async function rulesOf(path: string | undefined): Promise<Rules> {
  try {
    return await (path === undefined ? builtInRules() : readRulesFile(path));
  } catch (error) {
    if (error instanceof RulesError) throw new Misconfigured(error.errors);
    if (error instanceof Error && "code" in error) throw new CommandFailed(`${path} cannot be read: ${error.message}`);
    throw error;
  }
}

/** The mode that was named; all when none was. */
export function modesOf({ modes }: Rules, name: string | undefined): readonly ModeRules[] {
  if (name === undefined) return [...modes.values()];
  const mode = modes.get(name);
  if (mode) return [mode];
  const known = [...modes.keys()];
  const meant = closestMatch(name, known);
  throw new Misused(
    `The rules have no mode "${name}"${meant ? `; did you mean ${meant}?` : `. Their modes: ${known.join(", ")}.`}`,
  );
}
