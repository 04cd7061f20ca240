/**
 * What must hold after every run, whatever was done to the processes, the engines and the network meanwhile. The checks
 * name these; planted bugs say by which of them they are caught; the report counts them.
 */

/** Under which of the report's figures a breach is counted. */
export type Figure = "lost" | "doubled" | "unexpected" | "unknown" | "order" | "answers" | "leases" | "recovery";

export interface Invariant {
  readonly figure: Figure;
  readonly holds: string;
}

export const invariants = {
  "answered-is-done": { figure: "lost", holds: "what was answered with success is in the tables, as it was answered" },
  "done-once": { figure: "doubled", holds: "no command took effect twice, however often it was sent" },
  "refused-is-not-done": { figure: "unexpected", holds: "what was refused for good left nothing behind" },
  "nothing-without-a-cause": { figure: "unexpected", holds: "every effect was asked for by a command of the history" },
  "valid-is-accepted": { figure: "lost", holds: "no command that is as it should be is refused for good" },
  "unknown-is-all-or-nothing": {
    figure: "unknown",
    holds: "a command whose end nobody heard took effect whole, or not at all",
  },
  "same-answer": { figure: "answers", holds: "every success for one caller, route and key is the same to the byte" },
  "other-body-is-refused": { figure: "answers", holds: "a key that comes with another body is answered 409" },
  "no-stale-read": { figure: "answers", holds: "who was answered reads that version, or a later one" },
  "versions-without-gaps": {
    figure: "order",
    holds: "the versions of an aggregate are 1, 2, 3 …, and its state is that of the last",
  },
  "later-is-later": {
    figure: "order",
    holds: "a command that was sent after another on the same aggregate was answered has a later version",
  },
  "event-per-change": { figure: "lost", holds: "every change has one event, and every event one change" },
  "event-reaches-the-bus": { figure: "lost", holds: "every event is published in the end, and is on the bus" },
  "published-was-committed": { figure: "unexpected", holds: "the bus has no event that the outbox has not" },
  "published-in-order": {
    figure: "order",
    holds: "events of an aggregate are on the bus in the order of their versions",
  },
  "handled-in-order": {
    figure: "order",
    holds: "where the bus keeps order through retries, events of an aggregate take effect in it",
  },
  "event-takes-effect": { figure: "lost", holds: "every event took effect at its consumer" },
  "effect-once-per-event": { figure: "doubled", holds: "no event took effect twice at a consumer" },
  "notification-is-sent": { figure: "lost", holds: "every notification was sent in the end, and its receiver has it" },
  "sent-was-written": { figure: "unexpected", holds: "the receiver has nothing that is not a notification of ours" },
  "same-under-one-id": { figure: "answers", holds: "what arrives twice under one webhook-id is the same, to the byte" },
  "sent-once-per-claim": {
    figure: "doubled",
    holds: "a notification arrives no more often than it was claimed: a second copy has a crash behind it",
  },
  "failed-is-put-away": { figure: "lost", holds: "what is FAILED is in the DLQ, and what is in the DLQ has failed" },
  "order-taken-once": {
    figure: "doubled",
    holds: "the broker took no order twice, though it takes whatever it is sent",
  },
  "taken-is-succeeded": {
    figure: "lost",
    holds: "what the broker has taken has succeeded, and what has succeeded the broker has taken",
  },
  "intent-before-bytes": { figure: "unexpected", holds: "an order is written down before the broker hears of it" },
  "one-name-for-ever": {
    figure: "unexpected",
    holds: "the broker knows every order by the one name that its caller and key make",
  },
  "broker-answer-is-kept": { figure: "answers", holds: "what is kept as the broker's answer is what it answered" },
  "ledger-follows": {
    figure: "answers",
    holds: "the ledger says what became of every order, and its digest is that of its answer",
  },
  "only-the-holder-settles": { figure: "leases", holds: "a row is settled, renewed and released only by who holds it" },
  "lease-is-respected": {
    figure: "leases",
    holds: "nobody claims a row whose lease still runs, by the database's clock",
  },
  "lease-is-kept": { figure: "leases", holds: "a worker to which nothing was done does not lose its leases" },
  "claim-within-limit": { figure: "leases", holds: "a claim takes no more rows than a batch has" },
  "claim-counts": { figure: "leases", holds: "every claim raises the epoch and counts the attempt" },
  "allowed-transitions": { figure: "leases", holds: "a row changes its state only as docs/states.md says" },
  "retries-wait": { figure: "leases", holds: "what failed is not tried again before its time" },
  "unfinished-is-kept": { figure: "lost", holds: "no row is removed before it is finished" },
  "becomes-quiet": { figure: "recovery", holds: "once the faults are over, everything is finished within its time" },
  "killed-work-resumes": { figure: "recovery", holds: "a killed worker's rows are taken up within 1.2 leases" },
  "stopped-work-resumes": {
    figure: "recovery",
    holds: "after SIGTERM a worker's rows are finished or taken up in 2 s",
  },
  "clean-exit": { figure: "recovery", holds: "a process ends only when it is told to, and after SIGTERM with code 0" },
} as const satisfies Record<string, Invariant>;

export type InvariantName = keyof typeof invariants;

/** One breach, with what a reader needs to find it in the evidence. */
export interface Violation {
  readonly invariant: InvariantName;
  /** What was found, naming ids: "command c17 has 2 rows in entitlement_audit". */
  readonly what: string;
}
