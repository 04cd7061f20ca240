/** The evidence of a small run in which all went well, for tests of the checker to spoil. */
import type { Evidence, FaultRecord, Row } from "./evidence.ts";
import type { Attempt, Command } from "./history.ts";
import type { Transition } from "./watch.ts";

const startedAt = 1_800_000_000_000;

export const command = (id: string, more: Partial<Command> = {}): Command => ({
  id,
  service: "entitlement",
  kind: "grant",
  caller: "shop",
  path: "/v1/entitlements/grants",
  key: `key-${id}`,
  body: { user_id: "u_1", stock_keeping_unit: "item1", reason: "purchase", purchase_id: id },
  ...more,
});

export const answerOf = (version: number): string =>
  `{"user_id":"u_1","stock_keeping_unit":"item1","status":"ACTIVE","version":${version},"updated_at":"t${version}"}`;

export const attempt = (of: Command, version: number, more: Partial<Attempt> = {}): Attempt => ({
  command: of,
  attempt: 1,
  via: "entitlement_1",
  from: startedAt,
  to: startedAt + 10,
  end: "ok",
  status: 200,
  answer: answerOf(version),
  replayed: false,
  ...more,
});

/** One change of one row; a claim of a row that is ready, unless told otherwise. */
export const transition = (more: Partial<Transition> = {}): Transition => ({
  id: 1,
  at: startedAt + 100,
  tx: "1",
  table_name: "outbox_events",
  key: "e1",
  role: "entitlement_1",
  old_status: "PENDING",
  new_status: "IN_FLIGHT",
  old_epoch: 0,
  new_epoch: 1,
  old_attempts: 0,
  new_attempts: 1,
  old_lease: null,
  new_lease: startedAt + 2_600,
  old_holder: null,
  new_holder: "relay@host:100:abc123",
  old_due: startedAt,
  ...more,
});

/** What `claimed` left is settled by who claimed it. */
export const settled = (claimed: Transition, more: Partial<Transition> = {}): Transition => ({
  ...claimed,
  id: claimed.id + 1,
  at: claimed.at + 20,
  tx: `${claimed.tx}1`,
  old_status: claimed.new_status,
  new_status: "PUBLISHED",
  old_epoch: claimed.new_epoch,
  old_attempts: claimed.new_attempts,
  old_lease: claimed.new_lease,
  new_lease: null,
  old_holder: claimed.new_holder,
  new_holder: null,
  ...more,
});

export const fault = (more: Partial<FaultRecord> = {}): FaultRecord => ({
  n: 1,
  fault: "kill",
  target: "entitlement_1",
  from: startedAt + 110,
  to: startedAt + 1_500,
  happened: true,
  pid: 100,
  ...more,
});

/** Two commands on one aggregate, told and sent. */
export function allWell(): Evidence {
  const claimed = transition();
  return {
    facts: {
      seed: "1",
      bus: "postgres",
      startedAt,
      stoppedAt: startedAt + 10_000,
      quietAt: startedAt + 11_000,
      leaseMs: 2_500,
      timed: true,
      faults: [],
      exits: [],
    },
    history: [attempt(command("c1"), 1, { status: 201 }), attempt(command("c2"), 2)],
    tables: {
      "entitlement/state": [{ aggregate: "u_1/item1", status: "ACTIVE", version: 2, source_id: "c2" }],
      "entitlement/audit": [1, 2].map((n) => ({
        aggregate: "u_1/item1",
        version: n,
        action: "GRANT",
        command: `c${n}`,
        caller: "shop",
        event_id: `e${n}`,
      })),
      "entitlement/events": [1, 2].map((n) => ({
        event_id: `e${n}`,
        event_type: "EntitlementGranted",
        aggregate: "u_1/item1",
        version: n,
        status: "PUBLISHED",
        position: n,
        attempt_count: 1,
        last_error: null,
        command: `c${n}`,
      })),
      "entitlement/keys": [1, 2].map((n) => ({
        scope: "shop POST /v1/entitlements/grants",
        idem_key: `key-c${n}`,
        response_status: 200,
        answer: answerOf(n),
      })),
      "notification/notifications": [1, 2].map((n) => ({
        notification_id: `n${n}`,
        event_id: `e${n}`,
        user_id: "u_1",
        event_type: "EntitlementGranted",
        status: "SENT",
        attempt_count: 1,
        lease_epoch: 1,
        last_error: null,
        created_at: startedAt + n,
      })),
      "notification/processed": [1, 2].map((n) => ({ event_id: `e${n}`, consumer: "notification", result: "effect" })),
      "notification/dead": [],
      "notification/deadEvents": [],
    },
    transitions: [claimed, settled(claimed)],
    arrivals: [1, 2].map((n) => ({ at: startedAt + n, webhookId: `n${n}`, body: `{"n":${n}}` })),
    audited: [1, 2].map((n) => ({ eventId: `e${n}`, aggregateKey: "u_1/item1" })),
  };
}

/** The same evidence with the rows of one table changed. */
export const withRows = (
  evidence: Evidence,
  table: string,
  change: (rows: readonly Row[]) => readonly Row[],
): Evidence => ({
  ...evidence,
  tables: { ...evidence.tables, [table]: change(evidence.tables[table] ?? []) },
});
