/** The invariants of every run. Checks name them, planted defects state which of them catches them, the report counts them. */

/** The figure of the report that counts violations of an invariant. */
export type Figure = "lost" | "doubled" | "unexpected" | "unknown" | "order" | "answers" | "leases" | "recovery";

export interface Invariant {
  readonly figure: Figure;
  readonly holds: string;
}

export const invariants = {
  "accepted-is-done": { figure: "lost", holds: "every accepted command is in the tables as its response states" },
  "done-once": { figure: "doubled", holds: "no command took effect twice" },
  "rejected-is-not-done": { figure: "unexpected", holds: "a rejected command has no effect" },
  "effect-has-a-command": { figure: "unexpected", holds: "every effect has a command in the history" },
  "valid-is-accepted": { figure: "lost", holds: "no valid command is rejected" },
  "unknown-is-all-or-nothing": {
    figure: "unknown",
    holds: "a command with an unknown outcome took effect completely or not at all",
  },
  "same-response": { figure: "answers", holds: "every success for one caller, route and key has the same bytes" },
  "conflict-is-rejected": { figure: "answers", holds: "a key with another body gets 409" },
  "no-stale-read": { figure: "answers", holds: "a client reads its own change or a later version" },
  "audit-is-clean": {
    figure: "unexpected",
    holds: "`todoke audit` finds nothing in the tables: a balance is the sum of its transactions, and so on",
  },
  "reservation-is-granted": {
    figure: "lost",
    holds: "a reservation is granted if and only if it was not cancelled",
  },
  "reservation-granted-once": { figure: "doubled", holds: "a reservation is granted once" },
  "not-before-its-time": { figure: "order", holds: "no reservation is granted before its time" },
  "occurrence-is-complete": {
    figure: "lost",
    holds: "every occurrence of a schedule reserves points once for each of its users",
  },
  "one-user-per-identity": { figure: "doubled", holds: "an identity has one user, and a user one identity" },
  "suspended-is-refused": {
    figure: "unexpected",
    holds: "after the answer to a suspension no request of the user succeeds, at any process",
  },
  "no-session-after-logout": {
    figure: "unexpected",
    holds: "after the answer to a logout its session is refused, at every process",
  },
  "copy-follows-account": { figure: "lost", holds: "the gateway's copy of a user has the status that account has" },
  "one-match-per-player": { figure: "doubled", holds: "a ticket is in one match, and a player has one open ticket" },
  "match-of-two-teams": {
    figure: "unexpected",
    holds: "a match has two players of its mode, in two teams, whose tickets had not expired",
  },
  "match-announced-once": {
    figure: "lost",
    holds: "every match and every expired ticket has one event, and each of its players one notification",
  },
  "ticket-has-an-end": { figure: "lost", holds: "every ticket has one end, and is lost only if Redis lost data" },
  "ticket-responses-agree": { figure: "answers", holds: "what a player was told of a ticket is what is recorded" },
  "matched-in-join-order": { figure: "order", holds: "no ticket is passed over by two that joined later" },
  "versions-without-gaps": {
    figure: "order",
    holds: "versions of an aggregate are 1, 2, 3, …, and its state is that of the last change",
  },
  "real-time-order": {
    figure: "order",
    holds: "a command that is sent after the response to another has a later version",
  },
  "event-per-change": { figure: "lost", holds: "every change has one event, and every event one change" },
  "event-reaches-the-bus": { figure: "lost", holds: "every event is published and on the bus" },
  "published-was-committed": { figure: "unexpected", holds: "every event on the bus is in an outbox" },
  "published-in-order": {
    figure: "order",
    holds: "events of an aggregate are on the bus in the order of their versions",
  },
  "handled-in-order": {
    figure: "order",
    holds: "on a bus that keeps order through retries, effects are in order",
  },
  "event-takes-effect": { figure: "lost", holds: "every event took effect at its consumer" },
  "effect-once-per-event": { figure: "doubled", holds: "no event took effect twice at a consumer" },
  "notification-is-sent": { figure: "lost", holds: "every notification is sent, and the receiver has it" },
  "sent-was-written": { figure: "unexpected", holds: "every received webhook is one of our notifications" },
  "same-under-one-id": { figure: "answers", holds: "webhooks with the same webhook-id have the same bytes" },
  "sent-once-per-claim": {
    figure: "doubled",
    holds: "a notification arrives at most once per claim",
  },
  "failed-is-dead-lettered": { figure: "lost", holds: "a notification is FAILED if and only if it is in the DLQ" },
  "order-taken-once": {
    figure: "doubled",
    holds: "the broker took no order twice, although it does not deduplicate",
  },
  "taken-is-succeeded": {
    figure: "lost",
    holds: "an order succeeded if and only if the broker has it",
  },
  "order-stored-before-sending": { figure: "unexpected", holds: "an order is stored before it is sent to the broker" },
  "one-broker-name": {
    figure: "unexpected",
    holds: "the broker has every order under the one name of its caller and key",
  },
  "broker-reply-is-stored": { figure: "answers", holds: "the stored reply of the broker is its reply" },
  "ledger-matches-orders": {
    figure: "answers",
    holds: "the ledger has the status of every order and the digest of its response",
  },
  "only-the-holder-settles": {
    figure: "leases",
    holds: "only the process that claimed a row settles, renews or releases it",
  },
  "lease-is-respected": {
    figure: "leases",
    holds: "no row is claimed before its lease expires, by the database's clock",
  },
  "lease-is-kept": { figure: "leases", holds: "a worker without a fault does not lose its leases" },
  "claim-within-limit": { figure: "leases", holds: "a claim takes at most one batch" },
  "claim-counts": { figure: "leases", holds: "every claim raises the epoch and counts the attempt" },
  "allowed-transitions": { figure: "leases", holds: "a row changes its state only as docs/states.md says" },
  "retries-wait": { figure: "leases", holds: "a failed job is not retried before it is due" },
  "unfinished-is-kept": { figure: "lost", holds: "no row is removed before it is finished" },
  "becomes-quiet": { figure: "recovery", holds: "after the last fault, everything is finished within the limit" },
  "killed-work-resumes": { figure: "recovery", holds: "rows of a killed worker are claimed again within 1.2 leases" },
  "stopped-work-resumes": {
    figure: "recovery",
    holds: "rows of a worker that got SIGTERM are finished or claimed again within 2 s",
  },
  "clean-exit": { figure: "recovery", holds: "a process exits only by kill or SIGTERM, and after SIGTERM with code 0" },
} as const satisfies Record<string, Invariant>;

export type InvariantName = keyof typeof invariants;

/** One violation, with what is needed to find it in the evidence. */
export interface Violation {
  readonly invariant: InvariantName;
  /** The finding, with IDs: "command c17 has 2 rows in entitlement_audit". */
  readonly what: string;
}

export const violation = (invariant: InvariantName, what: string): Violation => ({ invariant, what });
