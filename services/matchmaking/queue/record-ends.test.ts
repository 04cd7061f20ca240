import { encodeOutboxEvent } from "@todoke/contracts";
import { sqlStateOf, transaction } from "@todoke/kernel/db";
import { removeFinished } from "@todoke/kernel/retention";
import { fixedId, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { selectTicketEnd } from "../store/ended-tickets.ts";
import { endsRetention } from "../store/retention.ts";
import {
  cancelled,
  counts,
  expired,
  match,
  openTestDatabase,
  record,
  recordIn,
  recordOnce,
  ticket,
} from "../store/testing.ts";
import { endsMax } from "./record-ends.ts";

const recorded = { kind: "recorded" };
const duplicate = { kind: "duplicate" };

test("every end is recorded with its event", async () => {
  await using t = await openTestDatabase();
  const made = match(1, ["u_1", "u_2"]);
  const regional = { ...made, match: { ...made.match, region: "eu" } };
  expect(await record(t.db, regional, cancelled("u_3"), expired("u_4", "heartbeat"))).toEqual(Array(3).fill(recorded));
  expect(await counts(t.db)).toEqual({ matches: 1, ends: 4, damaged: 0, events: 2 });
  const { ticketId, mode, userId, partySize, attributes, joinedAt, expiresAt } = ticket("u_1");
  expect(await selectTicketEnd(t.db, "duel.u_1")).toEqual({
    ...{ ticketId, mode, userId, partySize, attributes, joinedAt, expiresAt },
    status: "MATCHED",
    endedAt: made.match.matchedAt,
    match: {
      matchId: fixedId(1),
      team: 1,
      region: "eu",
      session: { server: "eu-1" },
      peers: [{ userId: "u_2", team: 2, partySize: 1 }],
    },
  });
  expect(await selectTicketEnd(t.db, "duel.u_3")).toMatchObject({ status: "CANCELLED", userId: "u_3" });
  expect(await selectTicketEnd(t.db, "duel.u_4")).toMatchObject({ status: "EXPIRED", reason: "heartbeat" });
  expect(await selectTicketEnd(t.db, "duel.u_5")).toBeUndefined();
});

test("MatchMade and TicketExpired follow the contract", async () => {
  await using t = await openTestDatabase();
  await record(t.db, match(1, ["u_1", "u_2"]), expired("u_4"));
  const { rows } = await t.db.query(
    `select event_type as "eventType", subject, aggregate_key, payload::text as payload from outbox_events order by position`,
  );
  for (const row of rows) expect(encodeOutboxEvent(row).byteLength).toBeGreaterThan(50);
  const seat = (user: string, team: number) => ({ user_id: user, ticket_id: `duel.${user}`, team, party_size: 1 });
  expect(rows.map((row) => ({ ...row, payload: JSON.parse(row.payload) }))).toMatchObject([
    {
      eventType: "MatchMade",
      subject: "matchmaking.events",
      aggregate_key: fixedId(1),
      payload: { match_id: fixedId(1), mode: "duel", players: [seat("u_1", 1), seat("u_2", 2)] },
    },
    {
      eventType: "TicketExpired",
      subject: "matchmaking.events",
      aggregate_key: "duel.u_4",
      payload: { user_id: "u_4", ticket_id: "duel.u_4", mode: "duel", reason: "timeout" },
    },
  ]);
});

test("recording an end again is a duplicate and writes nothing", async () => {
  await using t = await openTestDatabase();
  const ends = [match(1, ["u_1", "u_2"]), cancelled("u_3"), expired("u_4")];
  await record(t.db, ...ends);
  const before = await counts(t.db);
  expect(await record(t.db, ...ends)).toEqual([duplicate, duplicate, duplicate]);
  expect(await counts(t.db)).toEqual(before);
});

test("a match with an ended ticket is void and writes nothing", async () => {
  await using t = await openTestDatabase();
  await record(t.db, cancelled("u_1"), match(1, ["u_2", "u_3"]));
  const before = await counts(t.db);
  const results = await record(t.db, match(2, ["u_1", "u_2", "u_4"]), expired("u_1"), cancelled("u_2"));
  expect(results).toEqual([
    {
      kind: "void",
      ended: new Map([
        ["duel.u_1", "CANCELLED"],
        ["duel.u_2", "MATCHED"],
      ]),
    },
    { kind: "void", ended: new Map([["duel.u_1", "CANCELLED"]]) },
    { kind: "void", ended: new Map([["duel.u_2", "MATCHED"]]) },
  ]);
  expect(await counts(t.db)).toEqual(before);
});

test("a match that is recorded without one of its tickets is void, not a duplicate", async () => {
  await using t = await openTestDatabase();
  await record(t.db, match(1, ["u_1", "u_2"]));
  const before = await counts(t.db);
  expect(await record(t.db, match(1, ["u_1", "u_2", "u_3"]))).toEqual([{ kind: "void", ended: new Map() }]);
  expect(await counts(t.db)).toEqual(before);
});

test("of two ends of one ticket in a batch, the first one counts", async () => {
  await using t = await openTestDatabase();
  const results = await record(
    t.db,
    match(1, ["u_1", "u_2"]),
    match(2, ["u_2", "u_3"]),
    cancelled("u_3"),
    cancelled("u_3"),
  );
  expect(results.map(({ kind }) => kind)).toEqual(["recorded", "void", "recorded", "duplicate"]);
  expect(await counts(t.db)).toEqual({ matches: 1, ends: 3, damaged: 0, events: 1 });
});

test("of two processes that end one ticket at once, the second one gets the recorded status", async () => {
  await using t = await openTestDatabase();
  const other = t.open();
  const isWaiting = async () =>
    (await t.db.query(`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`))
      .rowCount === 1;
  for (const [n, retry] of [record, recordOnce].entries()) {
    const [mine, theirs] = [`u_${n}a`, `u_${n}b`];
    const late = await transaction(t.db, async (tx) => {
      await recordIn(tx, cancelled(mine));
      const racing = retry(other, match(n, [mine, theirs])).then(
        ([result]) => result,
        (error) => sqlStateOf(error),
      );
      await until("the other transaction waits", isWaiting);
      return { racing };
    });
    const voided = { kind: "void", ended: new Map([[`duel.${mine}`, "CANCELLED"]]) };
    expect(await late.racing).toEqual(retry === record ? voided : "23505");
    expect(await selectTicketEnd(t.db, `duel.${theirs}`)).toBeUndefined();
  }
});

test("a damaged ticket is quarantined once, with unstorable characters replaced", async () => {
  await using t = await openTestDatabase();
  const raw = `{"user":"\0\ud800${"x".repeat(20_000)}`;
  const damaged = {
    kind: "damaged",
    mode: "duel",
    ticketId: "duel.\0",
    raw,
    why: "half a \udc00",
    endedAt: 1e12,
  } as const;
  expect(await record(t.db, damaged, cancelled("u_1"), damaged)).toEqual([recorded, recorded, recorded]);
  expect(await record(t.db, damaged)).toEqual([recorded]);
  const { rows } = await t.db.query(`select * from damaged_tickets`);
  expect(rows).toMatchObject([
    { ticket_id: "duel.\ufffd", mode: "duel", why: "half a \ufffd", ended_at: new Date(1e12) },
  ]);
  expect(rows[0].raw).toHaveLength(10_000);
  expect(await counts(t.db)).toMatchObject({ ends: 1, events: 0 });
});

test("500 ends take three statements; more are rejected", async () => {
  await using t = await openTestDatabase();
  const ends = Array.from({ length: endsMax }, (_, n) => match(n, [`u_${n}a`, `u_${n}b`]));
  let statements = 0;
  await transaction(t.db, async (tx) => {
    const query = tx.query.bind(tx) as (...args: unknown[]) => unknown;
    const counted = Object.create(tx, {
      query: {
        value(...args: unknown[]) {
          statements++;
          return query(...args);
        },
      },
    });
    await recordIn(counted, ...ends);
  });
  expect(statements).toBe(3);
  expect(await counts(t.db)).toEqual({ matches: endsMax, ends: 2 * endsMax, damaged: 0, events: endsMax });
  await expect(record(t.db, ...ends, cancelled("u_1"))).rejects.toThrow(RangeError);
});

test("the database rejects a user twice in a match, a late match and an incomplete end", async () => {
  await using t = await openTestDatabase();
  const late = match(2, ["u_3"], 3_600_001);
  const [seat] = match(3, ["u_4"]).match.seats;
  const twice = match(1, ["u_1", "u_1"]);
  const other = { ...twice.match.seats[1], ticket: ticket("u_1", { ticketId: "duel.other" }) };
  const doubled = { ...twice, match: { ...twice.match, seats: [twice.match.seats[0], other] } } as typeof twice;
  const stateOf = (...ends: Parameters<typeof recordOnce>) => recordOnce(...ends).then(() => "inserted", sqlStateOf);
  expect(await stateOf(t.db, doubled)).toBe("23505");
  expect(await stateOf(t.db, late)).toBe("23514");
  expect(await stateOf(t.db, { ...expired("u_5"), reason: null } as never)).toBe("23514");
  expect(seat && (await stateOf(t.db, match(3, ["u_4"])))).toBe("inserted");
  expect(await counts(t.db)).toEqual({ matches: 1, ends: 1, damaged: 0, events: 1 });
});

test("retention deletes an old match with the ends of its tickets, and nothing else", async () => {
  await using t = await openTestDatabase();
  const damaged = { kind: "damaged", mode: "duel", ticketId: "duel.x", raw: "", why: "", endedAt: 0 } as const;
  await record(t.db, match(1, ["u_1", "u_2"]), match(2, ["u_3", "u_4"]), cancelled("u_5"), cancelled("u_6"), damaged);
  await t.db.query(`update matches set matched_at = matched_at - interval '30 days' where match_id = $1`, [fixedId(1)]);
  await t.db.query(`update ticket_ends set ended_at = ended_at - interval '30 days', joined_at = joined_at - interval '30 days'
                     where user_id in ('u_3', 'u_5')`);
  for (const policy of endsRetention(29 * 86_400_000)) await removeFinished(t.db, policy);
  const { rows } = await t.db.query(`select user_id from ticket_ends order by user_id`);
  expect(rows.map((row) => row.user_id)).toEqual(["u_3", "u_4", "u_6"]);
  expect(await counts(t.db)).toEqual({ matches: 1, ends: 3, damaged: 0, events: 2 });
});
