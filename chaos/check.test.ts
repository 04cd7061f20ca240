import { expect, test } from "vitest";
import { brokenInvariants, check } from "./check.ts";
import type { Evidence } from "./evidence.ts";
import { type InvariantName, invariants } from "./invariants.ts";
import {
  act,
  attempt,
  command,
  fault,
  orderAttempt,
  orderCommand,
  settled,
  soundEvidence,
  taken,
  ticketResponse,
  transition,
  withRows,
} from "./testing.ts";

test("sound evidence has no violation", () => {
  expect(check(soundEvidence())).toEqual([]);
});

const sound = soundEvidence();
const { startedAt } = sound.facts;
const claimed = transition();
const first = (rows: readonly object[]) => rows.slice(0, 1) as never;
const twice = (rows: readonly object[]) => [...rows, rows[0]] as never;
const changed =
  (more: object, which = 0) =>
  (rows: readonly object[]) =>
    rows.map((row, n) => (n === which ? { ...row, ...more } : row)) as never;
const history = (...more: Evidence["history"]): Evidence => ({ ...sound, history: [...sound.history, ...more] });
const transitions = (...all: Evidence["transitions"]): Evidence => ({ ...sound, transitions: all });
const facts = (more: Partial<Evidence["facts"]>): Evidence => ({ ...sound, facts: { ...sound.facts, ...more } });
const lost = { end: "unknown", why: "timeout" } as const;
const exit = {
  at: startedAt + 110,
  target: "entitlement_1",
  pid: 100,
  code: null,
  signal: "SIGKILL",
  wanted: "kill",
} as const;
/** Another process claims the row `ms` after the first one was killed or stopped. */
const resumedAfter = (ms: number) =>
  transitions(
    claimed,
    transition({
      id: 3,
      at: startedAt + 110 + ms,
      role: "entitlement_2",
      old_status: "IN_FLIGHT",
      old_epoch: 1,
      new_epoch: 2,
      old_attempts: 1,
      new_attempts: 2,
      old_lease: startedAt + 105 + ms,
      old_holder: claimed.new_holder,
      new_holder: "relay@host:200:abc123",
    }),
  );

const brokenEvidence: readonly (readonly [what: string, by: InvariantName, evidence: Evidence])[] = [
  ["an accepted command without a change", "accepted-is-done", withRows(sound, "entitlement/audit", first)],
  [
    "a response with another version",
    "accepted-is-done",
    withRows(sound, "entitlement/audit", changed({ version: 9 }, 1)),
  ],
  ["a command with two changes", "done-once", withRows(sound, "entitlement/audit", twice)],
  ["a change without a command", "effect-has-a-command", { ...sound, history: sound.history.slice(1) }],
  [
    "an invalid command with an effect",
    "rejected-is-not-done",
    {
      ...sound,
      history: [
        attempt(command("c1", { wants: "refusal" }), 1, { end: "refused", status: 400 }),
        ...sound.history.slice(1),
      ],
    },
  ],
  [
    "a valid command that is rejected",
    "valid-is-accepted",
    history(attempt(command("c3"), 0, { end: "refused", status: 409, answer: "{}" })),
  ],
  [
    "an unknown command with a change and no event",
    "unknown-is-all-or-nothing",
    withRows(
      { ...sound, history: [attempt(command("c1"), 0, lost), ...sound.history.slice(1)] },
      "entitlement/events",
      (rows) => rows.slice(1),
    ),
  ],
  [
    "an unknown command without a stored response",
    "unknown-is-all-or-nothing",
    withRows(
      { ...sound, history: [attempt(command("c1"), 0, lost), ...sound.history.slice(1)] },
      "entitlement/keys",
      (rows) => rows.slice(1),
    ),
  ],
  ["a replay that differs", "same-response", history(attempt(command("c2"), 3, { attempt: 2 }))],
  ["a response that is not stored", "same-response", withRows(sound, "entitlement/keys", first)],
  [
    "a used key with another body that succeeds",
    "conflict-is-rejected",
    history(attempt(command("c3", { key: "key-c1", wants: "refusal" }), 1)),
  ],
  [
    "a read that goes back",
    "no-stale-read",
    history({ read: "/v1/users/u_1", via: "entitlement_2", from: startedAt, answered: 2, seen: 1 }),
  ],
  ["a missing version", "versions-without-gaps", withRows(sound, "entitlement/audit", changed({ version: 3 }, 1))],
  [
    "a state that differs from the last change",
    "versions-without-gaps",
    withRows(sound, "entitlement/state", changed({ status: "REVOKED" })),
  ],
  [
    "a version that is older than an earlier response",
    "real-time-order",
    {
      ...sound,
      history: [attempt(command("c1"), 1, { from: startedAt + 50, to: startedAt + 60 }), attempt(command("c2"), 2)],
    },
  ],
  ["a change without an event", "event-per-change", withRows(sound, "entitlement/events", first)],
  [
    "an event that was not published",
    "event-reaches-the-bus",
    withRows(sound, "entitlement/events", changed({ status: "FAILED" })),
  ],
  [
    "an event that is PUBLISHED and not on the bus",
    "event-reaches-the-bus",
    { ...sound, audited: sound.audited.slice(1) },
  ],
  [
    "an event on the bus that was never committed",
    "published-was-committed",
    { ...sound, audited: [...sound.audited, { eventId: "e9", aggregateKey: "u_1/item1" }] },
  ],
  ["events in the wrong order", "published-in-order", { ...sound, audited: sound.audited.toReversed() }],
  [
    "effects in the wrong order on a bus that keeps it",
    "handled-in-order",
    withRows(sound, "notification/notifications", changed({ created_at: startedAt + 9 })),
  ],
  ["an event without an effect", "event-takes-effect", withRows(sound, "notification/notifications", first)],
  [
    "a dead-lettered event",
    "event-takes-effect",
    withRows(sound, "notification/deadEvents", () => [{ event_id: "e1", last_error: "x" }]),
  ],
  [
    "an event that took effect twice",
    "effect-once-per-event",
    withRows(sound, "notification/notifications", (rows) => [...rows, { ...rows[0], notification_id: "n3" } as never]),
  ],
  [
    "a SENT notification that was not received",
    "notification-is-sent",
    { ...sound, arrivals: sound.arrivals.slice(1) },
  ],
  [
    "a notification that was not sent",
    "notification-is-sent",
    withRows(sound, "notification/notifications", changed({ status: "PENDING" })),
  ],
  [
    "a webhook that is no notification",
    "sent-was-written",
    { ...sound, arrivals: [...sound.arrivals, { at: startedAt, webhookId: "n9", body: "{}" }] },
  ],
  ["a second copy that no claim explains", "sent-once-per-claim", { ...sound, arrivals: twice(sound.arrivals) }],
  [
    "two bodies with one webhook-id",
    "same-under-one-id",
    { ...sound, arrivals: [...sound.arrivals, { at: startedAt, webhookId: "n1", body: "{}" }] },
  ],
  [
    "a FAILED notification that is not in the DLQ",
    "failed-is-dead-lettered",
    withRows(sound, "notification/notifications", changed({ status: "FAILED" })),
  ],
  ["an accepted order that does not exist", "accepted-is-done", withRows(sound, "orders/orders", () => [])],
  [
    "a used key with another order that succeeds",
    "conflict-is-rejected",
    history(orderAttempt(orderCommand("o2", { key: "key-o1", wants: "refusal" }))),
  ],
  [
    "two different ends in responses",
    "same-response",
    history(orderAttempt(orderCommand("o1"), "failed", { attempt: 3, status: 200 })),
  ],
  [
    "an order that was taken twice",
    "order-taken-once",
    { ...sound, orderBroker: [taken(), taken({ broker_order_id: "b2" })] },
  ],
  ["an order that has succeeded and was not taken", "taken-is-succeeded", { ...sound, orderBroker: [] }],
  [
    "an order that was taken and aborted",
    "taken-is-succeeded",
    withRows(sound, "orders/orders", changed({ status: "aborted" })),
  ],
  [
    "an order that was taken before it was stored",
    "order-stored-before-sending",
    withRows(sound, "orders/orders", changed({ created_at: startedAt + 60 })),
  ],
  [
    "an unknown order at the broker",
    "one-broker-name",
    { ...sound, orderBroker: [taken(), taken({ client_order_id: "tdk-2" })] },
  ],
  [
    "another broker_order_id than the broker's",
    "broker-reply-is-stored",
    withRows(sound, "orders/orders", changed({ broker_order_id: "b9" })),
  ],
  ["a reply that was not the broker's", "broker-reply-is-stored", { ...sound, orderBroker: [taken({ price: "101" })] }],
  [
    "a ledger without the end of an order",
    "ledger-matches-orders",
    withRows(sound, "orders/ledger", changed({ status: "accepted" })),
  ],
  [
    "a step after the end",
    "allowed-transitions",
    withRows(sound, "orders/steps", (rows) => [
      ...rows,
      { command: "o1", place: 4, from_status: "succeeded", to_status: "pending" },
    ]),
  ],
  ["an end without an event", "event-per-change", withRows(sound, "orders/events", first)],
  [
    "a finding of the audit",
    "audit-is-clean",
    withRows(sound, "points/audit findings", () => [{ rule: "a rule", about: "u_1", detail: "5, not 6" }]),
  ],
  [
    "points of a transaction without its answer",
    "accepted-is-done",
    withRows(sound, "points/transactions", changed({ id: "t9" })),
  ],
  [
    "a reservation that was granted twice",
    "reservation-granted-once",
    withRows(sound, "points/reservations", changed({ grants: 2 })),
  ],
  [
    "a reservation that is FAILED",
    "reservation-is-granted",
    withRows(sound, "points/reservations", changed({ status: "FAILED", grants: 0 })),
  ],
  [
    "a cancelled reservation that nobody has cancelled",
    "reservation-is-granted",
    withRows(sound, "points/reservations", changed({ status: "CANCELLED", grants: 0 })),
  ],
  [
    "a reservation that was granted early",
    "not-before-its-time",
    withRows(sound, "points/reservations", changed({ early_ms: 20 })),
  ],
  ["a user without an occurrence", "occurrence-is-complete", withRows(sound, "points/reservations", first)],
  ["an identity with two users", "one-user-per-identity", history(act({ userId: "u_2" }))],
  ["a user without an identity", "one-user-per-identity", withRows(sound, "account/users", changed({ subject: null }))],
  [
    "a request of a suspended user that succeeds",
    "suspended-is-refused",
    history(act({ from: startedAt + 40, to: startedAt + 60 })),
  ],
  [
    "a session that is used after its logout",
    "no-session-after-logout",
    history(
      act({ act: "log out", session: "s2", from: startedAt, to: startedAt + 5 }),
      act({ session: "s2", from: startedAt + 6, to: startedAt + 9 }),
    ),
  ],
  [
    "a suspension that the gateway never learned",
    "copy-follows-account",
    withRows(sound, "gateway-bff/knownUsers", changed({ status: "ACTIVE" })),
  ],
  ["a ticket in two matches", "one-match-per-player", withRows(sound, "matchmaking/ends", twice)],
  ["a match of one team", "match-of-two-teams", withRows(sound, "matchmaking/ends", changed({ team: 1 }, 1))],
  ["a match without an event", "match-announced-once", withRows(sound, "matchmaking/events", () => [])],
  ["a ticket that neither waits nor ended", "ticket-has-an-end", history(ticketResponse(3))],
  [
    "a matched ticket that was reported as cancelled",
    "ticket-responses-agree",
    history(ticketResponse(1, { by: "cancel", status: "CANCELLED" })),
  ],
  [
    "a ticket that two later ones passed",
    "matched-in-join-order",
    withRows(sound, "matchmaking/ends", changed({ ended_at: startedAt + 900 })),
  ],
  [
    "a row that another process settles",
    "only-the-holder-settles",
    transitions(claimed, settled(claimed, { role: "entitlement_2" })),
  ],
  [
    "a claim before the lease expires",
    "lease-is-respected",
    transitions(transition({ old_lease: startedAt + 900, old_status: "IN_FLIGHT" })),
  ],
  ["a lease that is lost without a fault", "lease-is-kept", resumedAfter(2_600)],
  [
    "a claim of too many rows",
    "claim-within-limit",
    transitions(...Array.from({ length: 201 }, (_, n) => transition({ id: n, key: `e${n}` }))),
  ],
  ["a claim that does not count", "claim-counts", transitions(transition({ new_attempts: 0 }))],
  ["a claim that does not raise the epoch", "claim-counts", transitions(transition({ new_epoch: 0 }))],
  [
    "a transition out of a final state",
    "allowed-transitions",
    transitions(settled(claimed, { old_status: "PUBLISHED", new_status: "PENDING" })),
  ],
  ["a retry before it is due", "retries-wait", transitions(transition({ old_due: startedAt + 900 }))],
  [
    "a row that is deleted while it is pending",
    "unfinished-is-kept",
    transitions(transition({ new_status: null, new_epoch: null })),
  ],
  ["a process that does not recover", "becomes-quiet", facts({ faults: [fault({ failed: "it does not serve" })] })],
  ["a system that does not become quiet", "becomes-quiet", facts({ quietAt: undefined as never })],
  [
    "a killed worker's row that waits too long",
    "killed-work-resumes",
    { ...resumedAfter(3_100), facts: { ...sound.facts, faults: [fault()], exits: [exit] } },
  ],
  [
    "a stopped worker's row that waits too long",
    "stopped-work-resumes",
    { ...resumedAfter(2_100), facts: { ...sound.facts, faults: [fault({ fault: "terminate" })], exits: [] } },
  ],
  [
    "a process that exits by itself",
    "clean-exit",
    facts({ exits: [{ ...exit, signal: null, code: 1, wanted: "nothing" }] }),
  ],
  ["a stop with a bad exit code", "clean-exit", facts({ exits: [{ ...exit, signal: null, code: 1, wanted: "stop" }] })],
];

test.each(brokenEvidence)("%s breaks %s", (_, by, evidence) => {
  expect(brokenInvariants(check(evidence))).toContain(by);
});

test("every invariant has a test that violates it", () => {
  expect(new Set(brokenEvidence.map(([, by]) => by))).toEqual(new Set(Object.keys(invariants)));
});

test("time limits do not apply during other faults or on a busy machine", () => {
  const late = resumedAfter(3_100);
  const both = [fault(), fault({ n: 2, fault: "database slow", target: "entitlement_2", from: startedAt + 900 })];
  expect(check({ ...late, facts: { ...late.facts, faults: both, exits: [exit] } })).toEqual([]);
  expect(check({ ...late, facts: { ...late.facts, timed: false, faults: [fault()], exits: [exit] } })).toEqual([]);
  const elsewhere = [fault(), fault({ n: 2, fault: "database slow", target: "notification_2", from: startedAt + 900 })];
  const found = check({ ...late, facts: { ...late.facts, faults: elsewhere, exits: [exit] } });
  expect(brokenInvariants(found)).toEqual(["killed-work-resumes"]);
});

test("a command may take effect if its first attempt is lost and its second rejected", () => {
  const body = { ...command("c1").body, expires_at: new Date(startedAt - 1).toISOString() };
  const attempts = [
    attempt(command("c1", { body }), 0, lost),
    attempt(command("c1", { body }), 0, { end: "refused", status: 422 }),
  ];
  expect(check({ ...sound, history: [...attempts, ...sound.history.slice(1)] })).toEqual([]);
});
