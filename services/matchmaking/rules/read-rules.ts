/**
 * From a rules file to rules: all of it is good, or none of it is taken and every fault is told with its line.
 *
 * docs/guides/matchmaking-rules.md tells how such a file is written; built-in.yaml is one.
 */
import { hash } from "node:crypto";
import {
  entriesOf,
  fieldsOf,
  isBlank,
  itemsOf,
  openYaml,
  type Range,
  type Spot,
  textOf,
  wholeNumberOf,
} from "@todoke/http/spots";
import { modePattern } from "../ticket-id.ts";
import type { ModeRules, Rules, Step } from "./types.ts";

/** What is wrong with a rules file: "matchmaking.yaml:12: modes.ranked.teams should be …", a sentence each. */
export class RulesFaulty extends Error {
  override readonly name = "RulesFaulty";
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join("\n"));
    this.faults = faults;
  }
}

const bounds = {
  fileBytes: 256 * 1024,
  modes: 50,
  teams: { min: 2, max: 16 },
  teamSize: { min: 1, max: 32 },
  playersMax: 64,
  ticketSeconds: { min: 5, max: 86_400 },
  heartbeatSeconds: { min: 5, max: 600 },
  steps: 20,
  afterSeconds: { min: 0, max: 86_400 },
  gap: { min: 0, max: 1_000_000_000, any: "any" },
  latencyMs: { min: 1, max: 60_000, any: "any" },
  avoidSeconds: { min: 1, max: 604_800 },
  setByBackend: 32,
  sessionBytes: 4096,
} as const;

const defaults = { teams: 2, teamSize: 1, partyMax: 1, ticketSeconds: 600 };

const modeName = new RegExp(`^${modePattern}$`);
/** As a join takes them. */
const attributeName = /^[a-z][a-z0-9_]{0,63}$/;
const attributeWords = "the name of an attribute: a letter, then letters, digits and _, all small, at most 64";

/** Throws `RulesFaulty`. `file` is what the faults call it. */
export function readRules(text: string, file: string): Rules {
  const bytes = Buffer.byteLength(text);
  if (bytes > bounds.fileBytes)
    throw new RulesFaulty([`${file}:1: the file has ${bytes} bytes; ${bounds.fileBytes} is the most that is read`]);
  const { root, faults } = openYaml({ text, file });
  // What is no YAML would only be told a second time, in odder words.
  const modes = faults.all().length === 0 ? modesIn(root) : new Map();
  if (faults.all().length > 0) throw new RulesFaulty(faults.all());
  return { modes, version: hash("sha256", text, "hex").slice(0, 16) };
}

function modesIn(root: Spot): Map<string, ModeRules> {
  const { modes } = fieldsOf(root, ["modes"]);
  const named = modes && entriesOf(modes);
  if (!named?.size) root.refuse("should have one mode at least, under modes");
  else if (named.size > bounds.modes) modes?.refuse(`has ${named.size} modes; ${bounds.modes} is the most`);
  return new Map([...(named ?? [])].map(([name, spot]) => [name, modeOf(name, spot)]));
}

const modeFields = [
  "teams",
  "team_size",
  "party_max",
  "ticket_seconds",
  "heartbeat_seconds",
  "skill",
  "regions",
  "latency",
  "avoid_last_opponent_seconds",
  "set_by_backend",
  "session",
] as const;

function modeOf(mode: string, spot: Spot): ModeRules {
  if (!modeName.test(mode)) spot.refuse("should be named with a-z, 0-9, _ and -, at most 32 characters");
  const fields = fieldsOf(spot, modeFields);
  const ticketSeconds = numberOr(fields.ticket_seconds, bounds.ticketSeconds, defaults.ticketSeconds);
  const heartbeatMs = secondsAsMs(fields.heartbeat_seconds, {
    ...bounds.heartbeatSeconds,
    max: Math.min(bounds.heartbeatSeconds.max, ticketSeconds),
  });
  const avoidLastOpponentMs = secondsAsMs(fields.avoid_last_opponent_seconds, bounds.avoidSeconds);
  return {
    mode,
    ...sizesOf(spot, fields),
    ticketMs: ticketSeconds * 1000,
    ...(heartbeatMs !== undefined && { heartbeatMs }),
    ...(fields.skill && { skill: skillOf(fields.skill, ticketSeconds) }),
    ...(fields.regions && { regions: { attribute: attributeOf(fieldsOf(fields.regions, ["attribute"]), "regions") } }),
    ...(fields.latency && { latency: latencyOf(fields.latency, ticketSeconds) }),
    ...(avoidLastOpponentMs !== undefined && { avoidLastOpponentMs }),
    ...(fields.set_by_backend && { setByBackend: setByBackendOf(fields.set_by_backend) }),
    session: fields.session ? sessionOf(fields.session) : {},
  };
}

function sizesOf(spot: Spot, fields: { teams?: Spot; team_size?: Spot; party_max?: Spot }) {
  const teams = numberOr(fields.teams, bounds.teams, defaults.teams);
  const teamSize = numberOr(fields.team_size, bounds.teamSize, defaults.teamSize);
  if (teams * teamSize > bounds.playersMax)
    spot.refuse(`has ${teams} teams of ${teamSize}: a match has at most ${bounds.playersMax} players`);
  // A party is one team's at the most: it stays together.
  const partyMax = numberOr(fields.party_max, { min: 1, max: teamSize }, defaults.partyMax);
  return { teams, teamSize, partyMax };
}

function skillOf(spot: Spot, ticketSeconds: number): NonNullable<ModeRules["skill"]> {
  const fields = fieldsOf(spot, ["attribute", "window"]);
  const attribute = attributeOf(fields, "skill");
  if (!fields.window) spot.refuse("lacks window: how far apart two may be");
  const steps = fields.window ? stepsOf(fields.window, { limit: "gap", range: bounds.gap, ticketSeconds }) : [];
  return { attribute, steps };
}

function latencyOf(spot: Spot, ticketSeconds: number): NonNullable<ModeRules["latency"]> {
  const fields = fieldsOf(spot, ["attribute", "max_ms"]);
  const attribute = attributeOf(fields, "latency");
  if (!fields.max_ms) spot.refuse("lacks max_ms: how far from a region a player may be");
  const steps = fields.max_ms ? stepsOf(fields.max_ms, { limit: "ms", range: bounds.latencyMs, ticketSeconds }) : [];
  return { attribute, steps };
}

interface StepsWanted {
  readonly limit: "gap" | "ms";
  readonly range: Range;
  readonly ticketSeconds: number;
}

/** From nothing waited on, each later and wider than the one before: whoever waits longer accepts more, never less. */
function stepsOf(spot: Spot, { limit, range, ticketSeconds }: StepsWanted): Step[] {
  const steps: Step[] = [];
  for (const item of itemsOf(spot, { max: bounds.steps, of: `steps, as { after: 0, ${limit}: 50 }` })) {
    const fields = fieldsOf(item, ["after", limit]);
    if (!fields.after) item.refuse("lacks after: the seconds of waiting from which on it holds");
    if (!fields[limit]) item.refuse(`lacks ${limit}`);
    const after = fields.after && wholeNumberOf(fields.after, bounds.afterSeconds);
    const reach = fields[limit] && wholeNumberOf(fields[limit], range);
    const before = steps.at(-1);
    if (after !== undefined) {
      if (before === undefined && after !== 0) fields.after?.refuse("should be 0: the first step holds from the start");
      if (before && after * 1000 <= before.afterMs)
        fields.after?.refuse(`should be larger than the one before (${before.afterMs / 1000})`);
      if (after >= ticketSeconds) fields.after?.refuse(`is never reached: a ticket lives ${ticketSeconds} s`);
    }
    if (before && reach !== undefined && reach <= before.limit)
      fields[limit]?.refuse(
        `should be larger than the one before (${before.limit === Infinity ? "any" : before.limit})`,
      );
    if (after !== undefined && reach !== undefined) steps.push({ afterMs: after * 1000, limit: reach });
  }
  return steps;
}

/** As written, for the players of a match: JSON, and small, for it is written down with every match. */
function sessionOf(spot: Spot): ModeRules["session"] {
  if (entriesOf(spot) === undefined || isBlank(spot)) return {};
  const text = JSON.stringify(spot.node, (_, value) => {
    if (typeof value === "number" && !Number.isFinite(value)) spot.refuse("has a number that JSON cannot tell");
    return value;
  });
  const bytes = Buffer.byteLength(text);
  if (bytes > bounds.sessionBytes) spot.refuse(`has ${bytes} bytes as JSON; ${bounds.sessionBytes} is the most`);
  return JSON.parse(text);
}

/** Names of attributes, and `party_size`. */
function setByBackendOf(spot: Spot): string[] {
  const items = itemsOf(spot, { max: bounds.setByBackend, of: "names: of attributes, or party_size" });
  return items.flatMap((item) => textOf(item, { pattern: attributeName, what: attributeWords }) ?? []);
}

function attributeOf({ attribute }: { attribute?: Spot }, usual: string): string {
  if (!attribute) return usual;
  return textOf(attribute, { pattern: attributeName, what: attributeWords }) ?? usual;
}

/** Where it is not said, and where it is wrong (which is told), the usual one. */
const numberOr = (spot: Spot | undefined, range: Range, usual: number): number =>
  (spot && wholeNumberOf(spot, range)) ?? usual;

function secondsAsMs(spot: Spot | undefined, range: Range): number | undefined {
  const seconds = spot && wholeNumberOf(spot, range);
  return seconds === undefined ? undefined : seconds * 1000;
}
