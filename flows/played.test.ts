import { expect, test } from "vitest";
import { faultsOf, type OnRecord, type Played } from "./played.ts";
import type { Told } from "./playing.ts";

type End = OnRecord["ends"][number];

/** Four who came one after the other, 1 with 2 and 3 with 4, and a fifth who gave up. */
function sound(): Played {
  const end = (n: number, more: Partial<End>): End => ({
    ticket_id: `duel.${n}`,
    user_id: `u_${n}`,
    mode: "duel",
    status: "MATCHED",
    reason: null,
    match_id: null,
    team: null,
    joined_at: 1_000 + n,
    expires_at: 9_000,
    ended_at: 2_000,
    ...more,
  });
  const ends = [
    end(1, { match_id: "m_1", team: 1 }),
    end(2, { match_id: "m_1", team: 2 }),
    end(3, { match_id: "m_2", team: 1, ended_at: 2_100 }),
    end(4, { match_id: "m_2", team: 2, ended_at: 2_100 }),
    end(5, { status: "CANCELLED" }),
    end(6, { status: "EXPIRED", reason: "timeout" }),
  ];
  const player = (n: number) => ({ user_id: `u_${n}`, ticket_id: `duel.${n}` });
  return {
    waiting: [],
    mayForget: false,
    told: ends.flatMap((each) => [told(each, { by: "join", status: "QUEUED", askedAt: 1_010 }), told(each)]),
    record: {
      ends,
      matches: [
        { match_id: "m_1", mode: "duel" },
        { match_id: "m_2", mode: "duel" },
      ],
      made: [
        { event_id: "e_1", match_id: "m_1", mode: "duel", players: [player(1), player(2)] },
        { event_id: "e_2", match_id: "m_2", mode: "duel", players: [player(3), player(4)] },
      ],
      expired: [{ event_id: "e_3", ...player(6) }],
      notified: ["e_1 u_1", "e_1 u_2", "e_2 u_3", "e_2 u_4", "e_3 u_6"],
    },
  };
}

function told({ ticket_id, user_id, status, match_id }: End, more: Partial<Told> = {}): Told {
  const matchId = more.status === undefined && match_id !== null ? { matchId: match_id } : {};
  const about = { by: "look", user: user_id, mode: "duel", ticketId: ticket_id, status, askedAt: 3_000 } as const;
  const all = { ...about, ...matchId, ...more };
  return { ...all, answeredAt: all.askedAt + 5 };
}

const withEnd = (played: Played, ticketId: string, change: Partial<End>): Played => ({
  ...played,
  record: {
    ...played.record,
    ends: played.record.ends.map((end) => (end.ticket_id === ticketId ? { ...end, ...change } : end)),
  },
});

const withRecord = (played: Played, change: (record: OnRecord) => Partial<OnRecord>): Played => ({
  ...played,
  record: { ...played.record, ...change(played.record) },
});

const toldToo = (played: Played, ...more: readonly Told[]): Played => ({ ...played, told: [...played.told, ...more] });

const endOf = (played: Played, n: number) => played.record.ends[n - 1] as End;

test("what fits together has no fault", () => {
  expect(faultsOf(sound())).toEqual([]);
});

test.each<[string, RegExp, (played: Played) => Played]>([
  [
    "a ticket in two matches",
    /^M1: duel\.1 is in two matches/,
    (played) =>
      withRecord(played, ({ made }) => ({
        made: made.map((event) => ({
          ...event,
          players: [...event.players.slice(1), { user_id: "u_1", ticket_id: "duel.1" }],
        })),
      })),
  ],
  [
    "a player who waits twice",
    /^M1: u_7 in duel waits twice/,
    (played) => ({ ...played, waiting: ["duel.7", "duel.8"].map((ticketId) => ({ ticketId, user: "u_7" })) }),
  ],
  [
    "a player who was seen to wait with two tickets",
    /^M1: u_1 waited with duel\.1 and duel\.5 at once/,
    (played) =>
      toldToo(
        played,
        ...[1, 5].flatMap((n) =>
          [1_100, 1_200].map((askedAt) =>
            told({ ...endOf(played, n), user_id: "u_1" }, { status: "QUEUED", askedAt: askedAt + n }),
          ),
        ),
      ),
  ],
  ["a match against oneself", /^M2: match m_1/, (played) => withEnd(played, "duel.2", { user_id: "u_1" })],
  ["a match of one team", /^M2: match m_1 has one team/, (played) => withEnd(played, "duel.2", { team: 1 })],
  [
    "a match that was told and taken back",
    /^M3: duel\.1 was told as MATCHED, and is CANCELLED/,
    (played) => withEnd(played, "duel.1", { status: "CANCELLED", match_id: null }),
  ],
  [
    "a cancel that was told, and a match",
    /^M3: duel\.5 was told as CANCELLED, and is MATCHED/,
    (played) => withEnd(played, "duel.5", { status: "MATCHED", match_id: "m_1", team: 2 }),
  ],
  [
    "another match than was told",
    /^M3: duel\.1 was told to be in m_1, and is in m_2/,
    (played) => withEnd(played, "duel.1", { match_id: "m_2" }),
  ],
  [
    "other peers than were told",
    /^M3: duel\.1 was told to play with u_4/,
    (played) => toldToo(played, told(endOf(played, 1), { peers: ["u_4"], matchId: "m_1" })),
  ],
  [
    "an end that was told, and waiting after it",
    /^M3: duel\.5 was told as over, and later as waiting/,
    (played) => toldToo(played, told(endOf(played, 5), { status: "QUEUED", askedAt: 4_000 })),
  ],
  [
    "a lost ticket that was matched",
    /^M3: duel\.1 was told as EXPIRED \(lost\), and is MATCHED/,
    (played) => toldToo(played, told(endOf(played, 1), { status: "EXPIRED", reason: "lost" })),
  ],
  [
    "a match without its event",
    /^M4: match m_2 has 0 events/,
    (played) => withRecord(played, ({ made }) => ({ made: made.slice(0, 1) })),
  ],
  [
    "an event without its match",
    /^M4: match m_2 was told and is not on record/,
    (played) => withRecord(played, ({ matches }) => ({ matches: matches.slice(0, 1) })),
  ],
  [
    "half a match",
    /^M4: match m_2 was told of other tickets/,
    (played) => withRecord(played, ({ ends }) => ({ ends: ends.filter((end) => end.ticket_id !== "duel.4") })),
  ],
  [
    "a ticket that is nowhere",
    /^M5: duel\.5 is nowhere/,
    (played) => withRecord(played, ({ ends }) => ({ ends: ends.filter((end) => end.ticket_id !== "duel.5") })),
  ],
  [
    "a ticket that one wish made too many",
    /^M5: nobody was given duel\.9/,
    (played) => ({ ...played, waiting: [{ ticketId: "duel.9", user: "u_1" }] }),
  ],
  [
    "a ticket that was lost though Redis has forgotten nothing",
    /^M6: duel\.6 was lost/,
    (played) => withEnd(played, "duel.6", { reason: "lost" }),
  ],
  [
    "a match after its time",
    /^M7: duel\.3 was matched when its time was up/,
    (played) => withEnd(played, "duel.3", { expires_at: 2_050 }),
  ],
  [
    "somebody who was passed over",
    /^M8: duel\.1 was passed over by duel\.3/,
    (played) => withEnd(withEnd(played, "duel.1", { ended_at: 2_200 }), "duel.2", { ended_at: 2_200 }),
  ],
  [
    "a player who was told twice",
    /^e_1 u_1 was notified twice/,
    (played) => withRecord(played, ({ notified }) => ({ notified: [...notified, "e_1 u_1"] })),
  ],
  [
    "a player who was not told",
    /^e_2 u_4 is due or notified alone/,
    (played) => withRecord(played, ({ notified }) => ({ notified: notified.filter((each) => each !== "e_2 u_4") })),
  ],
  [
    "an end in silence",
    /^duel\.6 ended in silence/,
    (played) => withRecord(played, ({ notified }) => ({ expired: [], notified: notified.slice(0, 4) })),
  ],
])("%s is seen", (_, fault, change) => {
  expect(faultsOf(change(sound()))).toContainEqual(expect.stringMatching(fault));
});
