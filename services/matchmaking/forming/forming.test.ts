import { expect, test } from "vitest";
import type { OpenTicket } from "../queue/ticket.ts";
import type { ModeRules } from "../rules/index.ts";
import { formMatches } from "./index.ts";
import { modeRules, now, openTicket, type TicketOverrides } from "./testing.ts";

const skill = {
  attribute: "skill",
  steps: [
    { afterMs: 0, limit: 50 },
    { afterMs: 10_000, limit: 100 },
    { afterMs: 60_000, limit: Number.POSITIVE_INFINITY },
  ],
};

/** Tickets in join order, one second apart unless given. */
const queue = (...abouts: readonly TicketOverrides[]) =>
  abouts
    .map((about, at) => openTicket(at, { waitedMs: (abouts.length - at) * 1000, ...about }))
    .sort((a, b) => a.joinedAt - b.joinedAt);

const skilled = (value: number, about: TicketOverrides = {}): TicketOverrides => ({
  attributes: { skill: value },
  ...about,
});

/** Formats matches as "0 1 | 2 3": the numbers of the tickets of each team. */
function matches(rules: ModeRules, tickets: readonly OpenTicket[]): string[] {
  return formMatches(rules, tickets, now).map(({ seats, region }) => {
    const teams = Map.groupBy(seats, ({ team }) => team);
    const text = [...teams]
      .sort(([a], [b]) => a - b)
      .map(([, team]) => team.map(({ ticketId }) => ticketId.slice(1)).join(" "));
    return text.join(" | ") + (region === undefined ? "" : ` in ${region}`);
  });
}

test("without conditions, tickets are matched in join order and an odd one waits", () => {
  expect(matches(modeRules(), queue({}, {}, {}, {}, {}))).toEqual(["0 | 1", "2 | 3"]);
  expect(matches(modeRules({ teams: 3 }), queue({}, {}, {}, {}, {}))).toEqual(["0 | 1 | 2"]);
});

test("two tickets match within the skill range of the older one", () => {
  const rules = modeRules({ skill });
  expect(matches(rules, queue(skilled(1000), skilled(1050)))).toEqual(["0 | 1"]);
  expect(matches(rules, queue(skilled(1000), skilled(1051)))).toEqual([]);
  expect(matches(rules, queue(skilled(1000, { waitedMs: 10_000 }), skilled(1100)))).toEqual(["0 | 1"]);
  expect(matches(rules, queue(skilled(1000, { waitedMs: 9_999 }), skilled(1100)))).toEqual([]);
  expect(matches(rules, queue(skilled(1000, { waitedMs: 60_000 }), skilled(9000)))).toEqual(["0 | 1"]);
});

test("the nearest in skill is chosen, and among equally near ones the oldest", () => {
  const rules = modeRules({ skill });
  expect(matches(rules, queue(skilled(1000), skilled(1020), skilled(990)))).toEqual(["0 | 2"]);
  expect(matches(rules, queue(skilled(1000), skilled(990), skilled(990), skilled(1010)))).toEqual(["0 | 1", "2 | 3"]);
  expect(matches(rules, queue(skilled(1000), skilled(1010), skilled(990), skilled(990)))).toEqual(["0 | 1", "2 | 3"]);
});

test("the oldest ticket chooses first, and one without a match blocks no other", () => {
  const rules = modeRules({ skill });
  const tickets = queue(skilled(5000), skilled(1000), skilled(1040), skilled(1035), skilled(1080));
  expect(matches(rules, tickets)).toEqual(["1 | 3", "2 | 4"]);
});

test("the region is one that all tickets accept, the best one of the oldest ticket", () => {
  const rules = modeRules({ regions: { attribute: "where" } });
  const where = (...regions: string[]): TicketOverrides => ({ attributes: { where: regions } });
  expect(matches(rules, queue(where("eu"), where("us"), where("asia", "us"), where("us", "eu")))).toEqual([
    "0 | 3 in eu",
    "1 | 2 in us",
  ]);
  expect(matches(rules, queue(where("us", "eu"), where("eu"), where("us")))).toEqual(["0 | 2 in us"]);
  expect(matches(rules, queue({ attributes: { where: "eu" } }, where("eu")))).toEqual(["0 | 1 in eu"]);
  expect(matches(modeRules({ ...rules, teams: 3 }), queue(where("a", "b"), where("b", "c"), where("c", "a")))).toEqual(
    [],
  );
});

test("the latency to the region is within what each ticket accepts by its own wait", () => {
  const steps = [
    { afterMs: 0, limit: 60 },
    { afterMs: 20_000, limit: 120 },
  ];
  const rules = modeRules({ latency: { attribute: "ping", steps } });
  const ping = (ms: Record<string, number>, waitedMs = 1000): TicketOverrides => ({
    attributes: { ping: ms },
    waitedMs,
  });
  expect(matches(rules, queue(ping({ eu: 60, us: 20 }), ping({ eu: 10, us: 61 })))).toEqual(["0 | 1 in eu"]);
  expect(matches(rules, queue(ping({ eu: 100 }, 20_000), ping({ eu: 60 })))).toEqual(["0 | 1 in eu"]);
  expect(matches(rules, queue(ping({ eu: 10 }, 20_000), ping({ eu: 100 })))).toEqual([]);
  const both = modeRules({ ...rules, regions: { attribute: "where" } });
  const near = { ping: { eu: 10, us: 20 } };
  expect(
    matches(both, queue({ attributes: { ...near, where: ["us"] } }, { attributes: { ...near, where: ["eu", "us"] } })),
  ).toEqual(["0 | 1 in us"]);
});

test("users avoid each other if either ticket says so and the rules ask for it", () => {
  const rules = modeRules({ avoidLastOpponentMs: 600_000 });
  const waiting = queue({ avoid: ["u1"] }, {}, { avoid: ["u0"] }, {});
  expect(matches(rules, waiting)).toEqual(["0 | 3", "1 | 2"]);
  expect(matches(modeRules(), waiting)).toEqual(["0 | 1", "2 | 3"]);
  expect(matches(modeRules({ ...rules, teams: 3 }), queue({}, { avoid: ["u2"] }, {}, {}))).toEqual(["0 | 1 | 3"]);
});

test("a user with two tickets is in one match and does not meet themselves", () => {
  expect(matches(modeRules(), queue({ userId: "a" }, { userId: "a" }, {}, {}))).toEqual(["0 | 2"]);
});

test("expired tickets and tickets without required attributes are left out", () => {
  const rules = modeRules({ skill });
  const tickets = queue(
    skilled(1000, { expiresAt: now }),
    skilled(1000, { aliveUntil: now }),
    { attributes: {} },
    skilled(1000, { partySize: 2 }),
    skilled(1000),
    skilled(1000),
  );
  expect(matches(rules, tickets)).toEqual(["4 | 5"]);
});

test("a party stays in one team, and teams are full or there is no match", () => {
  const rules = modeRules({ teamSize: 4, partyMax: 4 });
  const parties = (...sizes: number[]) => queue(...sizes.map((partySize) => ({ partySize })));
  expect(matches(rules, parties(3, 4, 1))).toEqual(["0 2 | 1"]);
  expect(matches(rules, parties(3, 3, 2))).toEqual([]);
  expect(matches(rules, parties(3, 3, 2, 1, 1))).toEqual(["0 3 | 1 4"]);
  expect(matches(rules, parties(2, 3, 3, 2, 2, 2))).toEqual(["0 4 | 3 5"]);
  expect(matches(rules, parties(1, 1, 1, 1, 1, 1, 1))).toEqual([]);
});

test("teams are balanced as far as parties allow", () => {
  const rules = modeRules({
    teamSize: 2,
    partyMax: 2,
    skill: { attribute: "skill", steps: [{ afterMs: 0, limit: 9999 }] },
  });
  expect(matches(rules, queue(skilled(100), skilled(80), skilled(40), skilled(20)))).toEqual(["0 3 | 1 2"]);
  expect(matches(rules, queue(skilled(-100), skilled(-80), skilled(-40), skilled(-20)))).toEqual(["0 3 | 1 2"]);
  expect(matches(rules, queue(skilled(10, { partySize: 2 }), skilled(40), skilled(20)))).toEqual(["0 | 1 2"]);
  // The first distribution, strongest first to the weakest team, has a difference of 4.
  const six = [8, 7, 6, 5, 4, 0].map((value) => skilled(value));
  expect(matches({ ...rules, teamSize: 3 }, queue(...six))).toEqual(["0 1 5 | 2 3 4"]);
});
