import { expect, test } from "vitest";
import type { Attributes } from "../queue/ticket.ts";
import { readRules } from "./read-rules.ts";
import { faultsOfTicket, playerErrors } from "./ticket-errors.ts";

const { modes } = readRules(
  `modes:
  duel:
  all:
    team_size: 2
    party_max: 2
    skill: { attribute: elo, window: [{ after: 0, gap: any }] }
    regions: { attribute: where }
    latency: { attribute: ping, max_ms: [{ after: 0, ms: any }] }`,
  "rules.yaml",
);

function fieldsOf(mode: string, partySize: number, attributes: Attributes): readonly string[] {
  const rules = modes.get(mode);
  if (!rules) throw new Error(`there is no ${mode}`);
  return faultsOfTicket(rules, { partySize, attributes }).map(({ field }) => field);
}

test("a mode without conditions accepts any attributes but no party", () => {
  expect(fieldsOf("duel", 1, { anything: ["goes"] })).toEqual([]);
  expect(fieldsOf("duel", 2, {})).toEqual(["body.party_size"]);
});

test("all missing attributes are reported at once, under the names of the rules", () => {
  expect(fieldsOf("all", 3, {})).toEqual([
    "body.party_size",
    "body.attributes.elo",
    "body.attributes.where",
    "body.attributes.ping",
  ]);
  expect(fieldsOf("all", 2, { elo: 1500, where: "eu", ping: { eu: 20 } })).toEqual([]);
  expect(fieldsOf("all", 1, { elo: -3.5, where: ["eu", "us"], ping: { eu: 20, us: 0 } })).toEqual([]);
});

test.each<[string, Attributes]>([
  ["elo", { elo: "1500" }],
  ["elo", { elo: 1e12 }],
  ["where", { where: [] }],
  ["where", { where: "" }],
  ["where", { where: Array.from({ length: 17 }, (_, at) => `r${at}`) }],
  ["where", { where: { eu: 1 } }],
  ["ping", { ping: {} }],
  ["ping", { ping: { eu: -1 } }],
  ["ping", { ping: ["eu"] }],
  ["ping", { ping: { "": 5 } }],
])("an invalid %s is an error: %j", (attribute, wrong) => {
  const attributes = { elo: 1, where: "eu", ping: { eu: 1 }, ...wrong };
  expect(fieldsOf("all", 1, attributes)).toEqual([`body.attributes.${attribute}`]);
});

test("a player may not set reserved attributes, nor join where they are required", () => {
  const rules = readRules(
    `modes:
  strict: { team_size: 2, party_max: 2, skill: { window: [{ after: 0, gap: any }] }, set_by_backend: [skill, party_size, rank] }
  open: { team_size: 2, party_max: 2 }`,
    "x",
  ).modes;
  const fields = (mode: string, partySize: number, attributes: Attributes) => {
    const of = rules.get(mode);
    if (!of) throw new Error(`there is no ${mode}`);
    return playerErrors(of, { partySize, attributes }).map(({ field }) => field);
  };
  expect(fields("strict", 1, {})).toEqual(["body.attributes.skill"]);
  expect(fields("strict", 2, { skill: 1, rank: 3, map: "ice" })).toEqual([
    "body.attributes.skill",
    "body.party_size",
    "body.attributes.rank",
  ]);
  expect(fields("open", 2, { skill: 1 })).toEqual([]);
});

test("an inherited property name is not an attribute", () => {
  const rules = readRules("modes: { m: { regions: { attribute: constructor } } }", "x").modes.get("m");
  if (!rules) throw new Error("there is no m");
  expect(faultsOfTicket(rules, { partySize: 1, attributes: {} })).toHaveLength(1);
});
