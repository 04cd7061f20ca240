import { expect, test } from "vitest";
import { findViolations, type MatchmakingRecord, type PlayHistory } from "./matchmaking-invariants.ts";
import type { TicketResponse } from "./player-load.ts";

type End = MatchmakingRecord["ends"][number];

/** Players 1 and 2, and 3 and 4, are matched; player 5 cancels, player 6 expires. */
function consistentHistory(): PlayHistory {
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
    redisLostData: false,
    responses: ends.flatMap((each) => [
      response(each, { by: "join", status: "QUEUED", sentAt: 1_010 }),
      response(each),
    ]),
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

function response({ ticket_id, user_id, status, match_id }: End, more: Partial<TicketResponse> = {}): TicketResponse {
  const matchId = more.status === undefined && match_id !== null ? { matchId: match_id } : {};
  const base = { by: "get", user: user_id, mode: "duel", ticketId: ticket_id, status, sentAt: 3_000 } as const;
  const all = { ...base, ...matchId, ...more };
  return { ...all, receivedAt: all.sentAt + 5 };
}

const withEnd = (history: PlayHistory, ticketId: string, change: Partial<End>): PlayHistory => ({
  ...history,
  record: {
    ...history.record,
    ends: history.record.ends.map((end) => (end.ticket_id === ticketId ? { ...end, ...change } : end)),
  },
});

const withRecord = (
  history: PlayHistory,
  change: (record: MatchmakingRecord) => Partial<MatchmakingRecord>,
): PlayHistory => ({
  ...history,
  record: { ...history.record, ...change(history.record) },
});

const withResponses = (history: PlayHistory, ...more: readonly TicketResponse[]): PlayHistory => ({
  ...history,
  responses: [...history.responses, ...more],
});

const endOfPlayer = (history: PlayHistory, n: number) => history.record.ends[n - 1] as End;

test("a consistent history has no violation", () => {
  expect(findViolations(consistentHistory())).toEqual([]);
});

test.each<[string, RegExp, (history: PlayHistory) => PlayHistory]>([
  [
    "a ticket in two matches",
    /^M1: duel\.1 is in two MatchMade events/,
    (history) =>
      withRecord(history, ({ made }) => ({
        made: made.map((event) => ({
          ...event,
          players: [...event.players.slice(1), { user_id: "u_1", ticket_id: "duel.1" }],
        })),
      })),
  ],
  [
    "a player with two queued tickets",
    /^M1: u_7 in duel is queued twice/,
    (history) => ({ ...history, waiting: ["duel.7", "duel.8"].map((ticketId) => ({ ticketId, user: "u_7" })) }),
  ],
  [
    "a player with two queued tickets at one time",
    /^M1: u_1 was queued with duel\.1 and duel\.5 at once/,
    (history) =>
      withResponses(
        history,
        ...[1, 5].flatMap((n) =>
          [1_100, 1_200].map((sentAt) =>
            response({ ...endOfPlayer(history, n), user_id: "u_1" }, { status: "QUEUED", sentAt: sentAt + n }),
          ),
        ),
      ),
  ],
  ["a match against oneself", /^M2: match m_1/, (history) => withEnd(history, "duel.2", { user_id: "u_1" })],
  ["a match of one team", /^M2: match m_1 has one team/, (history) => withEnd(history, "duel.2", { team: 1 })],
  [
    "a reported match that is cancelled",
    /^M3: duel\.1 was reported as MATCHED and is CANCELLED/,
    (history) => withEnd(history, "duel.1", { status: "CANCELLED", match_id: null }),
  ],
  [
    "a reported cancel that is a match",
    /^M3: duel\.5 was reported as CANCELLED and is MATCHED/,
    (history) => withEnd(history, "duel.5", { status: "MATCHED", match_id: "m_1", team: 2 }),
  ],
  [
    "another match than reported",
    /^M3: duel\.1 was reported in m_1 and is in m_2/,
    (history) => withEnd(history, "duel.1", { match_id: "m_2" }),
  ],
  [
    "other peers than reported",
    /^M3: duel\.1 was reported with u_4/,
    (history) => withResponses(history, response(endOfPlayer(history, 1), { peers: ["u_4"], matchId: "m_1" })),
  ],
  [
    "a reported end with a later QUEUED response",
    /^M3: duel\.5 was reported as ended and later as queued/,
    (history) => withResponses(history, response(endOfPlayer(history, 5), { status: "QUEUED", sentAt: 4_000 })),
  ],
  [
    "a lost ticket that was matched",
    /^M3: duel\.1 was reported as EXPIRED \(lost\) and is MATCHED/,
    (history) => withResponses(history, response(endOfPlayer(history, 1), { status: "EXPIRED", reason: "lost" })),
  ],
  [
    "a match without its event",
    /^M4: match m_2 has 0 events/,
    (history) => withRecord(history, ({ made }) => ({ made: made.slice(0, 1) })),
  ],
  [
    "an event without its match",
    /^M4: match m_2 has an event and is not recorded/,
    (history) => withRecord(history, ({ matches }) => ({ matches: matches.slice(0, 1) })),
  ],
  [
    "half a match",
    /^M4: match m_2 has an event with other tickets/,
    (history) => withRecord(history, ({ ends }) => ({ ends: ends.filter((end) => end.ticket_id !== "duel.4") })),
  ],
  [
    "a ticket that is neither queued nor ended",
    /^M5: duel\.5 is neither queued nor ended/,
    (history) => withRecord(history, ({ ends }) => ({ ends: ends.filter((end) => end.ticket_id !== "duel.5") })),
  ],
  [
    "a ticket that no player was given",
    /^M5: no player was given duel\.9/,
    (history) => ({ ...history, waiting: [{ ticketId: "duel.9", user: "u_1" }] }),
  ],
  [
    "a lost ticket although Redis lost no data",
    /^M6: duel\.6 was lost/,
    (history) => withEnd(history, "duel.6", { reason: "lost" }),
  ],
  [
    "a match after the ticket expired",
    /^M7: duel\.3 was matched after it expired/,
    (history) => withEnd(history, "duel.3", { expires_at: 2_050 }),
  ],
  [
    "a ticket that was passed over",
    /^M8: duel\.1 was passed over by duel\.3/,
    (history) => withEnd(withEnd(history, "duel.1", { ended_at: 2_200 }), "duel.2", { ended_at: 2_200 }),
  ],
  [
    "a player who was notified twice",
    /^e_1 u_1 was notified twice/,
    (history) => withRecord(history, ({ notified }) => ({ notified: [...notified, "e_1 u_1"] })),
  ],
  [
    "a player who was not notified",
    /^e_2 u_4 is due without a notification/,
    (history) => withRecord(history, ({ notified }) => ({ notified: notified.filter((each) => each !== "e_2 u_4") })),
  ],
  [
    "an expiry without an event",
    /^duel\.6 expired without an event/,
    (history) => withRecord(history, ({ notified }) => ({ expired: [], notified: notified.slice(0, 4) })),
  ],
])("%s is a violation", (_, violation, change) => {
  expect(findViolations(change(consistentHistory()))).toContainEqual(expect.stringMatching(violation));
});
