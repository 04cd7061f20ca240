import { expect, test } from "vitest";
import { brokenBy, check } from "./check.ts";
import type { Evidence } from "./evidence.ts";
import { type InvariantName, invariants } from "./invariants.ts";
import {
  allWell,
  attempt,
  command,
  fault,
  orderAttempt,
  orderCommand,
  settled,
  taken,
  transition,
  withRows,
} from "./testing.ts";

test("a run in which all went well breaks nothing", () => {
  expect(check(allWell())).toEqual([]);
});

const well = allWell();
const { startedAt } = well.facts;
const claimed = transition();
const first = (rows: readonly object[]) => rows.slice(0, 1) as never;
const twice = (rows: readonly object[]) => [...rows, rows[0]] as never;
const changed =
  (more: object, which = 0) =>
  (rows: readonly object[]) =>
    rows.map((row, n) => (n === which ? { ...row, ...more } : row)) as never;
const history = (...more: Evidence["history"]): Evidence => ({ ...well, history: [...well.history, ...more] });
const transitions = (...all: Evidence["transitions"]): Evidence => ({ ...well, transitions: all });
const facts = (more: Partial<Evidence["facts"]>): Evidence => ({ ...well, facts: { ...well.facts, ...more } });
const lost = { end: "unknown", why: "timeout" } as const;
const exit = {
  at: startedAt + 110,
  target: "entitlement_1",
  pid: 100,
  code: null,
  signal: "SIGKILL",
  wanted: "kill",
} as const;
/** The row went on with another process, so long after the first was killed or told to stop. */
const takenUpAfter = (ms: number) =>
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

const spoilt: readonly (readonly [what: string, by: InvariantName, evidence: Evidence])[] = [
  ["an answered command without a change", "answered-is-done", withRows(well, "entitlement/audit", first)],
  [
    "an answer that tells another version",
    "answered-is-done",
    withRows(well, "entitlement/audit", changed({ version: 9 }, 1)),
  ],
  ["a command with two changes", "done-once", withRows(well, "entitlement/audit", twice)],
  ["a change that nobody asked for", "nothing-without-a-cause", { ...well, history: well.history.slice(1) }],
  [
    "a malformed command that did something",
    "refused-is-not-done",
    {
      ...well,
      history: [
        attempt(command("c1", { wants: "refusal" }), 1, { end: "refused", status: 400 }),
        ...well.history.slice(1),
      ],
    },
  ],
  [
    "a good command that is refused",
    "valid-is-accepted",
    history(attempt(command("c3"), 0, { end: "refused", status: 409, answer: "{}" })),
  ],
  [
    "an unheard command that changed something and told nobody",
    "unknown-is-all-or-nothing",
    withRows(
      { ...well, history: [attempt(command("c1"), 0, lost), ...well.history.slice(1)] },
      "entitlement/events",
      (rows) => rows.slice(1),
    ),
  ],
  [
    "an unheard command whose answer was not stored",
    "unknown-is-all-or-nothing",
    withRows(
      { ...well, history: [attempt(command("c1"), 0, lost), ...well.history.slice(1)] },
      "entitlement/keys",
      (rows) => rows.slice(1),
    ),
  ],
  ["a replay that differs", "same-answer", history(attempt(command("c2"), 3, { attempt: 2 }))],
  ["an answer that was not stored", "same-answer", withRows(well, "entitlement/keys", first)],
  [
    "another body under a taken key that is answered with success",
    "other-body-is-refused",
    history(attempt(command("c3", { key: "key-c1", wants: "refusal" }), 1)),
  ],
  [
    "a read that goes back",
    "no-stale-read",
    history({ read: "/v1/users/u_1", via: "entitlement_2", from: startedAt, answered: 2, seen: 1 }),
  ],
  [
    "a version that is missing",
    "versions-without-gaps",
    withRows(well, "entitlement/audit", changed({ version: 3 }, 1)),
  ],
  [
    "a state that is not the last change's",
    "versions-without-gaps",
    withRows(well, "entitlement/state", changed({ status: "REVOKED" })),
  ],
  [
    "a version that is earlier than one that was answered before",
    "later-is-later",
    {
      ...well,
      history: [attempt(command("c1"), 1, { from: startedAt + 50, to: startedAt + 60 }), attempt(command("c2"), 2)],
    },
  ],
  ["a change without an event", "event-per-change", withRows(well, "entitlement/events", first)],
  [
    "an event that was not published",
    "event-reaches-the-bus",
    withRows(well, "entitlement/events", changed({ status: "FAILED" })),
  ],
  [
    "an event that is PUBLISHED and not on the bus",
    "event-reaches-the-bus",
    { ...well, audited: well.audited.slice(1) },
  ],
  [
    "an event on the bus that was never committed",
    "published-was-committed",
    { ...well, audited: [...well.audited, { eventId: "e9", aggregateKey: "u_1/item1" }] },
  ],
  ["events in the wrong order", "published-in-order", { ...well, audited: well.audited.toReversed() }],
  [
    "effects in the wrong order on a bus that keeps it",
    "handled-in-order",
    withRows(well, "notification/notifications", changed({ created_at: startedAt + 9 })),
  ],
  ["an event that nobody heard", "event-takes-effect", withRows(well, "notification/notifications", first)],
  [
    "an event that was given up",
    "event-takes-effect",
    withRows(well, "notification/deadEvents", () => [{ event_id: "e1", last_error: "x" }]),
  ],
  [
    "an event that took effect twice",
    "effect-once-per-event",
    withRows(well, "notification/notifications", (rows) => [...rows, { ...rows[0], notification_id: "n3" } as never]),
  ],
  ["a notification that is SENT and nobody got", "notification-is-sent", { ...well, arrivals: well.arrivals.slice(1) }],
  [
    "a notification that was not sent",
    "notification-is-sent",
    withRows(well, "notification/notifications", changed({ status: "PENDING" })),
  ],
  [
    "a webhook that is no notification",
    "sent-was-written",
    { ...well, arrivals: [...well.arrivals, { at: startedAt, webhookId: "n9", body: "{}" }] },
  ],
  ["a second copy that no claim explains", "sent-once-per-claim", { ...well, arrivals: twice(well.arrivals) }],
  [
    "two bodies under one id",
    "same-under-one-id",
    { ...well, arrivals: [...well.arrivals, { at: startedAt, webhookId: "n1", body: "{}" }] },
  ],
  [
    "a FAILED notification that is not in the DLQ",
    "failed-is-put-away",
    withRows(well, "notification/notifications", changed({ status: "FAILED" })),
  ],
  ["an answered order that is not there", "answered-is-done", withRows(well, "orders/orders", () => [])],
  [
    "another order under a taken key that is answered with success",
    "other-body-is-refused",
    history(orderAttempt(orderCommand("o2", { key: "key-o1", wants: "refusal" }))),
  ],
  [
    "two ends that a caller was told of",
    "same-answer",
    history(orderAttempt(orderCommand("o1"), "failed", { attempt: 3, status: 200 })),
  ],
  [
    "an order that was taken twice",
    "order-taken-once",
    { ...well, orderBroker: [taken(), taken({ broker_order_id: "b2" })] },
  ],
  ["an order that has succeeded and was not taken", "taken-is-succeeded", { ...well, orderBroker: [] }],
  [
    "an order that was taken and given up",
    "taken-is-succeeded",
    withRows(well, "orders/orders", changed({ status: "aborted" })),
  ],
  [
    "an order that was taken before it was written down",
    "intent-before-bytes",
    withRows(well, "orders/orders", changed({ created_at: startedAt + 60 })),
  ],
  [
    "a name at the broker that is no order's",
    "one-name-for-ever",
    { ...well, orderBroker: [taken(), taken({ client_order_id: "tdk-2" })] },
  ],
  [
    "another number than the broker's",
    "broker-answer-is-kept",
    withRows(well, "orders/orders", changed({ broker_order_id: "b9" })),
  ],
  ["an answer that was not the broker's", "broker-answer-is-kept", { ...well, orderBroker: [taken({ price: "101" })] }],
  [
    "a ledger that has not heard of the end",
    "ledger-follows",
    withRows(well, "orders/ledger", changed({ status: "accepted" })),
  ],
  [
    "a step after the end",
    "allowed-transitions",
    withRows(well, "orders/steps", (rows) => [
      ...rows,
      { command: "o1", place: 4, from_status: "succeeded", to_status: "pending" },
    ]),
  ],
  ["an end that nobody was told of", "event-per-change", withRows(well, "orders/events", first)],
  [
    "a row that is settled by somebody else",
    "only-the-holder-settles",
    transitions(claimed, settled(claimed, { role: "entitlement_2" })),
  ],
  [
    "a claim before the lease is over",
    "lease-is-respected",
    transitions(transition({ old_lease: startedAt + 900, old_status: "IN_FLIGHT" })),
  ],
  ["a lease that was lost for no reason", "lease-is-kept", takenUpAfter(2_600)],
  [
    "a claim of too many rows",
    "claim-within-limit",
    transitions(...Array.from({ length: 201 }, (_, n) => transition({ id: n, key: `e${n}` }))),
  ],
  ["a claim that does not count", "claim-counts", transitions(transition({ new_attempts: 0 }))],
  ["a claim that leaves the epoch", "claim-counts", transitions(transition({ new_epoch: 0 }))],
  [
    "a state that comes back from the end",
    "allowed-transitions",
    transitions(settled(claimed, { old_status: "PUBLISHED", new_status: "PENDING" })),
  ],
  ["a retry before its time", "retries-wait", transitions(transition({ old_due: startedAt + 900 }))],
  [
    "a row that is removed while it waits",
    "unfinished-is-kept",
    transitions(transition({ new_status: null, new_epoch: null })),
  ],
  ["a process that does not come back", "becomes-quiet", facts({ faults: [fault({ failed: "it does not serve" })] })],
  ["a system that does not become quiet", "becomes-quiet", facts({ quietAt: undefined as never })],
  [
    "a killed worker's row that waits too long",
    "killed-work-resumes",
    { ...takenUpAfter(3_100), facts: { ...well.facts, faults: [fault()], exits: [exit] } },
  ],
  [
    "a stopped worker's row that waits too long",
    "stopped-work-resumes",
    { ...takenUpAfter(2_100), facts: { ...well.facts, faults: [fault({ fault: "terminate" })], exits: [] } },
  ],
  [
    "a process that ends by itself",
    "clean-exit",
    facts({ exits: [{ ...exit, signal: null, code: 1, wanted: "nothing" }] }),
  ],
  ["a stop with a bad exit code", "clean-exit", facts({ exits: [{ ...exit, signal: null, code: 1, wanted: "stop" }] })],
];

test.each(spoilt)("%s breaks %s", (_, by, evidence) => {
  expect(brokenBy(check(evidence))).toContain(by);
});

test("there is no invariant that no test breaks", () => {
  expect(new Set(spoilt.map(([, by]) => by))).toEqual(new Set(Object.keys(invariants)));
});

test("a time is not held against the system while something else is done to it, nor on a busy machine", () => {
  const late = takenUpAfter(3_100);
  const both = [fault(), fault({ n: 2, fault: "database slow", target: "entitlement_2", from: startedAt + 900 })];
  expect(check({ ...late, facts: { ...late.facts, faults: both, exits: [exit] } })).toEqual([]);
  expect(check({ ...late, facts: { ...late.facts, timed: false, faults: [fault()], exits: [exit] } })).toEqual([]);
  const elsewhere = [fault(), fault({ n: 2, fault: "database slow", target: "notification_2", from: startedAt + 900 })];
  const found = check({ ...late, facts: { ...late.facts, faults: elsewhere, exits: [exit] } });
  expect(brokenBy(found)).toEqual(["killed-work-resumes"]);
});

test("a command whose first try got lost and whose second was refused may have taken effect", () => {
  const body = { ...command("c1").body, expires_at: new Date(startedAt - 1).toISOString() };
  const tries = [
    attempt(command("c1", { body }), 0, lost),
    attempt(command("c1", { body }), 0, { end: "refused", status: 422 }),
  ];
  expect(check({ ...well, history: [...tries, ...well.history.slice(1)] })).toEqual([]);
});
