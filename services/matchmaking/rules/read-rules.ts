/**
 * Reads a rules file. If anything in it is wrong, all errors are reported with their lines and no rule takes effect.
 *
 * docs/guides/matchmaking-rules.md describes the format; built-in.yaml is an example.
 */
import { hash } from "node:crypto";
import { modePattern } from "@todoke/contracts/api";
import {
  isBlank,
  openYaml,
  type Range,
  readEntries,
  readFields,
  readInteger,
  readItems,
  readText,
  type YamlValue,
} from "@todoke/http/yaml-values";
import type { ModeRules, Rules, Step } from "./types.ts";

/** The errors of a rules file, such as "matchmaking.yaml:12: modes.ranked.teams should be …". */
export class RulesError extends Error {
  override readonly name = "RulesError";
  readonly errors: readonly string[];

  constructor(errors: readonly string[]) {
    super(errors.join("\n"));
    this.errors = errors;
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
/** The same pattern as in a join request. */
const attributeName = /^[a-z][a-z0-9_]{0,63}$/;
const attributeNameText = "an attribute name: a-z, then a-z, 0-9 and _, at most 64 characters";

/** Throws `RulesError`. `file` is the name for its errors. */
export function readRules(text: string, file: string): Rules {
  const bytes = Buffer.byteLength(text);
  if (bytes > bounds.fileBytes)
    throw new RulesError([`${file}:1: the file has ${bytes} bytes; the limit is ${bounds.fileBytes}`]);
  const { root, errors } = openYaml({ text, file });
  // A YAML syntax error would only cause misleading errors about the modes.
  const modes = errors.all().length === 0 ? parseModes(root) : new Map();
  if (errors.all().length > 0) throw new RulesError(errors.all());
  return { modes, version: hash("sha256", text, "hex").slice(0, 16) };
}

function parseModes(root: YamlValue): Map<string, ModeRules> {
  const { modes } = readFields(root, ["modes"]);
  const named = modes && readEntries(modes);
  if (!named?.size) root.reject("should have at least one mode, under modes");
  else if (named.size > bounds.modes) modes?.reject(`has ${named.size} modes; the limit is ${bounds.modes}`);
  return new Map([...(named ?? [])].map(([name, value]) => [name, parseMode(name, value)]));
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

function parseMode(mode: string, value: YamlValue): ModeRules {
  if (!modeName.test(mode)) value.reject("should be named with a-z, 0-9, _ and -, at most 32 characters");
  const fields = readFields(value, modeFields);
  const ticketSeconds = numberOr(fields.ticket_seconds, bounds.ticketSeconds, defaults.ticketSeconds);
  const heartbeatMs = secondsAsMs(fields.heartbeat_seconds, {
    ...bounds.heartbeatSeconds,
    max: Math.min(bounds.heartbeatSeconds.max, ticketSeconds),
  });
  const avoidLastOpponentMs = secondsAsMs(fields.avoid_last_opponent_seconds, bounds.avoidSeconds);
  return {
    mode,
    ...parseSizes(value, fields),
    ticketMs: ticketSeconds * 1000,
    ...(heartbeatMs !== undefined && { heartbeatMs }),
    ...(fields.skill && { skill: parseSkill(fields.skill, ticketSeconds) }),
    ...(fields.regions && {
      regions: { attribute: parseAttribute(readFields(fields.regions, ["attribute"]), "regions") },
    }),
    ...(fields.latency && { latency: parseLatency(fields.latency, ticketSeconds) }),
    ...(avoidLastOpponentMs !== undefined && { avoidLastOpponentMs }),
    ...(fields.set_by_backend && { setByBackend: parseSetByBackend(fields.set_by_backend) }),
    session: fields.session ? parseSession(fields.session) : {},
  };
}

function parseSizes(value: YamlValue, fields: { teams?: YamlValue; team_size?: YamlValue; party_max?: YamlValue }) {
  const teams = numberOr(fields.teams, bounds.teams, defaults.teams);
  const teamSize = numberOr(fields.team_size, bounds.teamSize, defaults.teamSize);
  if (teams * teamSize > bounds.playersMax)
    value.reject(`has ${teams} teams of ${teamSize}: a match has at most ${bounds.playersMax} players`);
  // A party stays together in one team.
  const partyMax = numberOr(fields.party_max, { min: 1, max: teamSize }, defaults.partyMax);
  return { teams, teamSize, partyMax };
}

function parseSkill(value: YamlValue, ticketSeconds: number): NonNullable<ModeRules["skill"]> {
  const fields = readFields(value, ["attribute", "window"]);
  const attribute = parseAttribute(fields, "skill");
  if (!fields.window) value.reject("lacks window: the accepted differences in skill");
  const steps = fields.window ? parseSteps(fields.window, { limit: "gap", range: bounds.gap, ticketSeconds }) : [];
  return { attribute, steps };
}

function parseLatency(value: YamlValue, ticketSeconds: number): NonNullable<ModeRules["latency"]> {
  const fields = readFields(value, ["attribute", "max_ms"]);
  const attribute = parseAttribute(fields, "latency");
  if (!fields.max_ms) value.reject("lacks max_ms: the accepted latencies");
  const steps = fields.max_ms ? parseSteps(fields.max_ms, { limit: "ms", range: bounds.latencyMs, ticketSeconds }) : [];
  return { attribute, steps };
}

interface StepsFormat {
  readonly limit: "gap" | "ms";
  readonly range: Range;
  readonly ticketSeconds: number;
}

/** The first step starts at 0, and each step is later and wider than the previous one. */
function parseSteps(value: YamlValue, { limit, range, ticketSeconds }: StepsFormat): Step[] {
  const steps: Step[] = [];
  for (const item of readItems(value, { max: bounds.steps, of: `steps, as { after: 0, ${limit}: 50 }` })) {
    const fields = readFields(item, ["after", limit]);
    if (!fields.after) item.reject("lacks after: the seconds of waiting after which it applies");
    if (!fields[limit]) item.reject(`lacks ${limit}`);
    const after = fields.after && readInteger(fields.after, bounds.afterSeconds);
    const width = fields[limit] && readInteger(fields[limit], range);
    const before = steps.at(-1);
    if (after !== undefined) {
      if (before === undefined && after !== 0)
        fields.after?.reject("should be 0: the first step applies from the start");
      if (before && after * 1000 <= before.afterMs)
        fields.after?.reject(`should be larger than the one before (${before.afterMs / 1000})`);
      if (after >= ticketSeconds) fields.after?.reject(`is never reached: a ticket lives ${ticketSeconds} s`);
    }
    if (before && width !== undefined && width <= before.limit)
      fields[limit]?.reject(
        `should be larger than the one before (${before.limit === Infinity ? "any" : before.limit})`,
      );
    if (after !== undefined && width !== undefined) steps.push({ afterMs: after * 1000, limit: width });
  }
  return steps;
}

/** Any JSON object, and small, because it is stored with every match. */
function parseSession(value: YamlValue): ModeRules["session"] {
  if (readEntries(value) === undefined || isBlank(value)) return {};
  const text = JSON.stringify(value.node, (_, each) => {
    if (typeof each === "number" && !Number.isFinite(each)) value.reject("has a number that JSON cannot represent");
    return each;
  });
  const bytes = Buffer.byteLength(text);
  if (bytes > bounds.sessionBytes) value.reject(`has ${bytes} bytes as JSON; the limit is ${bounds.sessionBytes}`);
  return JSON.parse(text);
}

function parseSetByBackend(value: YamlValue): string[] {
  const items = readItems(value, { max: bounds.setByBackend, of: "attribute names, or party_size" });
  return items.flatMap((item) => readText(item, { pattern: attributeName, what: attributeNameText }) ?? []);
}

function parseAttribute({ attribute }: { attribute?: YamlValue }, defaultName: string): string {
  if (!attribute) return defaultName;
  return readText(attribute, { pattern: attributeName, what: attributeNameText }) ?? defaultName;
}

/** The default also stands in for an invalid value, which is reported. */
const numberOr = (value: YamlValue | undefined, range: Range, defaultValue: number): number =>
  (value && readInteger(value, range)) ?? defaultValue;

function secondsAsMs(value: YamlValue | undefined, range: Range): number | undefined {
  const seconds = value && readInteger(value, range);
  return seconds === undefined ? undefined : seconds * 1000;
}
