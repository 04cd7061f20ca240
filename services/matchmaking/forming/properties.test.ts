import { repetitions } from "@todoke/kernel/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Proposal } from "../queue/index.ts";
import type { OpenTicket } from "../queue/ticket.ts";
import type { ModeRules } from "../rules/index.ts";
import { limitAfter } from "./candidates.ts";
import { formMatches } from "./index.ts";
import { modeRules, now, openTicket } from "./testing.ts";

const steps = (limits: fc.Arbitrary<number>) =>
  fc
    .tuple(fc.uniqueArray(limits, { minLength: 1, maxLength: 4 }), fc.boolean())
    .map(([list, any]) => [...list.sort((a, b) => a - b), ...(any ? [Number.POSITIVE_INFINITY] : [])])
    .map((list) => list.map((limit, at) => ({ afterMs: at * 10_000, limit })));

const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });

const anyRules: fc.Arbitrary<ModeRules> = fc
  .record({
    teams: fc.integer({ min: 2, max: 3 }),
    teamSize: fc.integer({ min: 1, max: 4 }),
    party: fc.integer({ min: 1, max: 4 }),
    skill: optional(steps(fc.integer({ min: 0, max: 300 }))),
    regions: fc.boolean(),
    latency: optional(steps(fc.integer({ min: 20, max: 100 }))),
    avoid: fc.boolean(),
  })
  .map(({ teams, teamSize, party, skill, regions, latency, avoid }) =>
    modeRules({
      teams,
      teamSize,
      partyMax: Math.min(party, teamSize),
      ...(skill && { skill: { attribute: "skill", steps: skill } }),
      ...(regions && { regions: { attribute: "where" } }),
      ...(latency && { latency: { attribute: "ping", steps: latency } }),
      ...(avoid && { avoidLastOpponentMs: 60_000 }),
    }),
  );

const regions = ["eu", "us", "asia"];

/** Some tickets lack an attribute, are expired, or have too large a party. Few distinct skills, so that many are equal. */
const anyTickets: fc.Arbitrary<readonly OpenTicket[]> = fc
  .array(
    fc.record({
      waitedMs: fc.integer({ min: 0, max: 50_000 }),
      partySize: fc.constantFrom(1, 1, 1, 2, 3, 4),
      skill: fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: -500, max: 500 })),
      where: fc.subarray(regions, { minLength: 0 }),
      ping: fc.dictionary(fc.constantFrom(...regions), fc.integer({ min: 0, max: 120 }), { minKeys: 1, maxKeys: 3 }),
      avoid: fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 3 }),
      isOver: fc.integer({ min: 0, max: 15 }),
    }),
    { maxLength: 60 },
  )
  .map((tickets) =>
    tickets
      .map(({ waitedMs, partySize, skill, where, ping, avoid, isOver }, at) =>
        openTicket(at, {
          waitedMs,
          partySize,
          attributes: { skill, where, ping },
          avoid: avoid.map((user) => `u${user}`),
          aliveUntil: isOver === 0 ? now : now + 1,
        }),
      )
      .sort((a, b) => a.joinedAt - b.joinedAt),
  );

const skillOf = ({ attributes }: OpenTicket) => Number(attributes.skill);
const isFit = ({ partyMax, regions }: ModeRules, { partySize, attributes, aliveUntil }: OpenTicket) =>
  partySize <= partyMax && aliveUntil > now && !(regions && (attributes.where as string[]).length === 0);

const meet = (rules: ModeRules, a: OpenTicket, b: OpenTicket) =>
  a.userId !== b.userId &&
  !(rules.avoidLastOpponentMs !== undefined && (a.avoid.includes(b.userId) || b.avoid.includes(a.userId)));

const takes = ({ regions, latency }: ModeRules, { attributes, joinedAt }: OpenTicket, region: string) =>
  (!regions || (attributes.where as string[]).includes(region)) &&
  (!latency ||
    ((attributes.ping as Record<string, number>)[region] ?? Number.NaN) <= limitAfter(latency.steps, now - joinedAt));

const within = ({ skill }: ModeRules, oldest: OpenTicket, other: OpenTicket) =>
  !skill || Math.abs(skillOf(oldest) - skillOf(other)) <= limitAfter(skill.steps, now - oldest.joinedAt);

/** The requirements of a match, independent of how it is found. */
function expectLawful(rules: ModeRules, tickets: readonly OpenTicket[], { seats, region }: Proposal): void {
  const members = seats.map(({ ticketId }) => tickets.find((ticket) => ticket.ticketId === ticketId) as OpenTicket);
  const [oldest] = tickets.filter((ticket) => members.includes(ticket));
  expect(members.every((ticket) => isFit(rules, ticket))).toBe(true);
  expect(members.every((ticket) => oldest && within(rules, oldest, ticket))).toBe(true);
  expect(members.every((a) => members.every((b) => a === b || meet(rules, a, b)))).toBe(true);
  expect(region !== undefined).toBe(Boolean(rules.regions || rules.latency));
  if (region !== undefined) expect(members.every((ticket) => takes(rules, ticket, region))).toBe(true);
  const players = new Map<number, number>();
  for (const [at, { team }] of seats.entries())
    players.set(team, (players.get(team) ?? 0) + (members[at]?.partySize ?? 0));
  const full = Array.from({ length: rules.teams }, (_, at) => [at + 1, rules.teamSize]);
  expect([...players].sort(([a], [b]) => a - b)).toEqual(full);
}

test("for any rules and tickets, matches obey the rules and forming is deterministic", () => {
  fc.assert(
    fc.property(anyRules, anyTickets, (rules, tickets) => {
      const proposals = formMatches(rules, tickets, now);
      for (const proposal of proposals) expectLawful(rules, tickets, proposal);
      const ids = proposals.flatMap(({ seats }) => seats.map(({ ticketId }) => ticketId));
      expect(new Set(ids).size).toBe(ids.length);
      expect(formMatches(rules, tickets, now)).toEqual(proposals);
    }),
    { numRuns: repetitions(1_000) },
  );
});

/** Exhaustive search for one against one: each ticket in join order considers all later ones. */
function plainPairs(rules: ModeRules, tickets: readonly OpenTicket[]): string[] {
  const left = tickets.filter((ticket) => isFit(rules, ticket));
  const pairs: string[] = [];
  for (let oldest = left.shift(); oldest; oldest = left.shift()) {
    const gap = (ticket: OpenTicket) => (rules.skill ? Math.abs(skillOf(ticket) - skillOf(oldest)) : 0);
    for (const region of likedBy(rules, oldest)) {
      const [partner] = left
        .filter((other) => within(rules, oldest, other) && meet(rules, oldest, other))
        .filter((other) => region === undefined || takes(rules, other, region))
        .sort((a, b) => gap(a) - gap(b)); // A stable sort: among equally near tickets the oldest is first.
      if (!partner) continue;
      left.splice(left.indexOf(partner), 1);
      pairs.push(`${oldest.ticketId} ${partner.ticketId} ${region}`);
      break;
    }
  }
  return pairs;
}

/** The accepted regions, best first. */
function likedBy(rules: ModeRules, ticket: OpenTicket): readonly (string | undefined)[] {
  const { where, ping } = ticket.attributes as { where: string[]; ping: Record<string, number> };
  if (!rules.latency) return rules.regions ? where : [undefined];
  const near = Object.entries(ping).sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1));
  return near.map(([region]) => region).filter((region) => takes(rules, ticket, region));
}

test("one against one, the matches equal those of an exhaustive search", () => {
  fc.assert(
    fc.property(anyRules, anyTickets, (given, tickets) => {
      const rules = { ...given, teams: 2, teamSize: 1, partyMax: 1 };
      const pairs = formMatches(rules, tickets, now).map(
        ({ seats: [a, b], region }) => `${a?.ticketId} ${b?.ticketId} ${region}`,
      );
      expect(pairs).toEqual(plainPairs(rules, tickets));
    }),
    { numRuns: repetitions(1_000) },
  );
});

test("without conditions, tickets are matched in join order", () => {
  fc.assert(
    fc.property(anyTickets, fc.integer({ min: 2, max: 4 }), (tickets, teams) => {
      const rules = modeRules({ teams });
      const line = tickets.filter((ticket) => isFit(rules, ticket)).map(({ ticketId }) => ticketId);
      const groups = Array.from({ length: Math.floor(line.length / teams) }, (_, at) =>
        line.slice(at * teams, (at + 1) * teams).map((ticketId, seat) => ({ ticketId, team: seat + 1 })),
      );
      expect(formMatches(rules, tickets, now).map(({ seats }) => seats)).toEqual(groups);
    }),
  );
});

test("with teams of single players, the remaining tickets cannot form another match", () => {
  fc.assert(
    fc.property(anyRules, anyTickets, (given, tickets) => {
      const { avoidLastOpponentMs: _, ...rest } = given;
      const rules = { ...rest, partyMax: 1 };
      const taken = new Set(
        formMatches(rules, tickets, now).flatMap(({ seats }) => seats.map((seat) => seat.ticketId)),
      );
      const left = tickets.filter((ticket) => !taken.has(ticket.ticketId) && isFit(rules, ticket));
      for (const [at, oldest] of left.entries())
        for (const region of likedBy(rules, oldest)) {
          const company = left
            .slice(at)
            .filter((other) => within(rules, oldest, other) && (region === undefined || takes(rules, other, region)));
          expect(company.length).toBeLessThan(rules.teams * rules.teamSize);
        }
    }),
    { numRuns: repetitions(500) },
  );
});
