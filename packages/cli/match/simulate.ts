/** `todoke match simulate`: how long players would wait and whom they would meet, before anybody plays under the rules. */
import type { ModeRules } from "@todoke/matchmaking/rules";
import type { Call } from "../command.ts";
import { Misused } from "../faults.ts";
import { complain, say } from "../output.ts";
import { type Arrival, arrivalsOf, type Crowd } from "./arrivals.ts";
import { figuresOf } from "./figures.ts";
import { pictureOf } from "./picture.ts";
import { recordedArrivals } from "./recorded.ts";
import { modesOf, rulesOf } from "./rules-of.ts";
import { simulate as play } from "./simulation.ts";

export async function simulate({ names, values, switches }: Call): Promise<number> {
  if (names.length > 0) throw new Misused("The file is named by --rules, the mode by --mode.");
  const arrivalsIn = crowdOf(values);
  const rules = await rulesOf(values.rules);
  const modes = modesOf(rules, values.mode);
  if (values.tickets !== undefined && modes.length > 1)
    throw new Misused("Recorded tickets are of one mode: name it by --mode.");
  const results = [];
  for (const mode of modes) {
    const arrivals = await arrivalsIn(mode);
    const outcome = play(mode, arrivals, { onProgress: progressOf(mode.mode, arrivals.length) });
    const figures = figuresOf(mode, outcome);
    results.push(figures);
    if (!switches.has("json")) say(`${results.length > 1 ? "\n" : ""}${pictureOf(figures, outcome)}`);
  }
  if (switches.has("json")) say(JSON.stringify({ rules_version: rules.version, modes: results }, null, 2));
  return 0;
}

/** Who comes to wait in a mode: those of --tickets, or a crowd as the options describe it. */
function crowdOf(values: Call["values"]): (mode: ModeRules) => Promise<readonly Arrival[]> {
  const { tickets } = values;
  if (tickets !== undefined) {
    const stray = ["players", "per-second", "seed", "skill"].find((option) => values[option] !== undefined);
    if (stray) throw new Misused(`--${stray} describes made-up players, and --tickets brings real ones.`);
    return (mode) => recordedArrivals(tickets, mode.heartbeatMs);
  }
  const crowd: Crowd = {
    players: numberIn(values, "players", { usual: 10_000, min: 2, max: 1_000_000 }),
    perSecond: numberIn(values, "per-second", { usual: 20, min: 0.01, max: 100_000 }),
    seed: numberIn(values, "seed", { usual: 1, min: 0, max: 2 ** 32 - 1 }),
    skill: skillIn(values.skill ?? "1500,300"),
  };
  return async (mode) => arrivalsOf(mode, crowd);
}

interface Wanted {
  readonly usual: number;
  readonly min: number;
  readonly max: number;
}

function numberIn(values: Call["values"], name: string, { usual, min, max }: Wanted): number {
  const value = Number(values[name] || usual);
  if (value >= min && value <= max && (min < 1 || Number.isInteger(value))) return value;
  throw new Misused(`--${name} is a number from ${min} to ${max}.`);
}

function skillIn(given: string): Crowd["skill"] {
  const [, mean, deviation] = /^(-?\d{1,9}(?:\.\d+)?),(\d{1,9}(?:\.\d+)?)$/.exec(given) ?? [];
  if (mean === undefined || deviation === undefined)
    throw new Misused("--skill is the mean and the standard deviation, as 1500,300.");
  return { mean: Number(mean), deviation: Number(deviation) };
}

const quietMs = 1_000;

/** A line every second, once it takes longer than that: on the side, where it spoils no output. */
function progressOf(mode: string, all: number): (come: number) => void {
  const startedAt = performance.now();
  let toldAt = startedAt;
  return (come) => {
    const now = performance.now();
    if (now - toldAt < quietMs) return;
    toldAt = now;
    complain(`${mode}: ${come} of ${all} tickets after ${Math.round((now - startedAt) / 1000)} s`);
  };
}
