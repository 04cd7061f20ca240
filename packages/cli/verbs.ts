/** Commands that are several in one: `todoke dead list`, `todoke keys revoke`. */

import { closestMatch } from "@todoke/http/closest-match";
import type { Call } from "./command.ts";
import { Misused } from "./faults.ts";

export interface Verb {
  /** Its `names` are those behind the verb. */
  run(call: Call): Promise<number>;
  /** The options and switches that mean something to it. */
  readonly options: readonly string[];
}

export async function runVerb(verbs: Readonly<Record<string, Verb>>, call: Call): Promise<number> {
  const [word = "", ...names] = call.names;
  const verb = Object.hasOwn(verbs, word) ? verbs[word] : undefined;
  if (!verb) throw noSuchVerb(word, Object.keys(verbs));
  const stray = [...call.switches, ...Object.keys(call.values)].find((option) => !verb.options.includes(option));
  if (stray) throw new Misused(`--${stray} means nothing to ${word}.`);
  return verb.run({ ...call, names });
}

function noSuchVerb(word: string, known: readonly string[]): Misused {
  const meant = closestMatch(word, known);
  return new Misused(word ? `There is no "${word}"${meant ? `; did you mean ${meant}?` : "."}` : "Say what to do.");
}
