/**
 * The matchmaking service in a run: players of one mode, who join, poll, cancel and join again. On the PostgreSQL bus its queue is
 * in PostgreSQL, on the others in Redis. The checks are those of the flows.
 */
import { formatVerifyingKey, toVerifyingKey } from "@todoke/http";
import { findViolations, type MatchmakingRecord } from "../../flows/matchmaking-invariants.ts";
import { createPlayers, openPlayerLoad } from "../../flows/player-load.ts";
import { signingKey } from "../../flows/signing.ts";
import { checkPublished } from "../checks/outbox.ts";
import type { Evidence, Row } from "../evidence.ts";
import { isTicketResponse } from "../history.ts";
import { type InvariantName, type Violation, violation } from "../invariants.ts";
import { outboxTable } from "../watch.ts";
import type { ServiceUnderTest } from "./index.ts";
import { gatewaySecret } from "./players.ts";

const players = { count: 24, pollMs: 120 };

/** Faults after which Redis may have lost tickets. */
const losing = ["redis flushed", "redis crash", "redis stop"];

const ms = (column: string) => `(extract(epoch from ${column}) * 1000)::float8 as ${column}`;

export const matchmaking: ServiceUnderTest = {
  name: "matchmaking",
  copies: 2,
  load: () => import("@todoke/matchmaking"),
  env: ({ redisUrl }) => ({
    MATCHMAKING_PORT: "0",
    MATCHMAKING_BATCH_MAX: String(outboxTable.batchMax),
    MATCHMAKING_TICKET_SECRET: gatewaySecret,
    TODOKE_TOKEN_KEYS: formatVerifyingKey(toVerifyingKey("gateway-bff", signingKey)),
    ...(redisUrl !== undefined && { MATCHMAKING_REDIS_URL: redisUrl }),
  }),
  commits: ["join tickets", "commit"],
  publishes: true,
  consumes: true,
  isCalled: true,
  failpoints: ["join.", "match.", "cancel.", "sweep.", "recorder.", "relay.", "transaction.", "stop."],
  lock: `select from matchmaking.tickets limit 4 for update skip locked`,
  tables: [outboxTable],
  async actors({ harness, history, stopping }) {
    const urls = () => {
      const serving = harness.slots.flatMap((slot) => (slot.service === "matchmaking" && slot.http ? [slot.http] : []));
      return serving.length > 0 ? serving.map(({ url }) => url.replace(/\/$/, "")) : ["http://127.0.0.1:1"];
    };
    const load = openPlayerLoad(createPlayers("duel", players), urls);
    load.start();
    if (!stopping.aborted) await new Promise((resolve) => stopping.addEventListener("abort", resolve, { once: true }));
    await load.stop().finally(() => {
      for (const response of load.responses) history.write(response);
    });
  },
  unfinished: `select count(*)::int as unfinished from matchmaking.outbox_events where status <> 'PUBLISHED'`,
  evidence: {
    ends: `select ticket_id, user_id, mode, status, reason, match_id::text, team, ${ms("joined_at")}, ${ms("expires_at")},
                  ${ms("ended_at")} from matchmaking.ticket_ends`,
    matches: `select match_id::text, mode from matchmaking.matches`,
    waiting: `select ticket_id, user_id from matchmaking.tickets`,
    events: `select event_id::text, event_type, aggregate_key as aggregate, version::int, status, position::int,
                    attempt_count, last_error, payload::text
               from matchmaking.outbox_events order by position`,
    deadEvents: `select event_id::text, last_error from matchmaking.inbox_dlq where status <> 'RESOLVED'`,
  },
  check: (evidence) => [
    ...findViolations({
      responses: evidence.history.filter(isTicketResponse),
      record: toRecord(evidence),
      waiting: rows(evidence, "matchmaking/waiting").map(({ ticket_id, user_id }) => ({
        ticketId: String(ticket_id),
        user: String(user_id),
      })),
      redisLostData: evidence.facts.faults.some(({ fault, happened }) => happened && losing.includes(fault)),
    }).map(toViolation),
    ...checkPublished(evidence, rows(evidence, "matchmaking/events")),
    ...rows(evidence, "matchmaking/deadEvents").map(({ event_id, last_error }) =>
      violation("event-takes-effect", `event ${event_id} was dead-lettered: ${last_error}`),
    ),
  ],
};

const rows = ({ tables }: Evidence, name: string): readonly Row[] => tables[name] ?? [];

/** Notifications are left out if the service did not run. */
function toRecord(evidence: Evidence): MatchmakingRecord {
  const ofType = (type: string) =>
    rows(evidence, "matchmaking/events").flatMap(({ event_type, event_id, payload }) =>
      event_type === type ? [{ ...JSON.parse(String(payload)), event_id }] : [],
    );
  const [made, expired] = [ofType("MatchMade"), ofType("TicketExpired")];
  const ids = new Set([...made, ...expired].map(({ event_id }) => event_id));
  const due = [
    ...made.flatMap(({ event_id, players }) => players.map((each: Row) => ({ ...each, event_id }))),
    ...expired,
  ];
  const sent = evidence.facts.services.includes("notification") ? rows(evidence, "notification/notifications") : due;
  return {
    ends: rows(evidence, "matchmaking/ends") as unknown as MatchmakingRecord["ends"],
    matches: rows(evidence, "matchmaking/matches") as unknown as MatchmakingRecord["matches"],
    made,
    expired,
    notified: sent.flatMap(({ event_id, user_id }) => (ids.has(event_id) ? [`${event_id} ${user_id}`] : [])),
  };
}

const byCode: Readonly<Record<string, InvariantName>> = {
  M1: "one-match-per-player",
  M2: "match-of-two-teams",
  M3: "ticket-responses-agree",
  M4: "match-announced-once",
  M5: "ticket-has-an-end",
  M6: "ticket-has-an-end",
  M7: "match-of-two-teams",
  M8: "matched-in-join-order",
};

const toViolation = (what: string): Violation => violation(byCode[what.slice(0, 2)] ?? "match-announced-once", what);
