/** Evidence of a small run without violations, which tests of the checker modify. */
import { hash } from "node:crypto";
import type { TicketResponse } from "../flows/player-load.ts";
import type { Evidence, FaultRecord, Row, Taken } from "./evidence.ts";
import type { Act, Attempt, Command } from "./history.ts";
import { services } from "./services/index.ts";
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

export const sampleResponse = (version: number): string =>
  `{"user_id":"u_1","stock_keeping_unit":"item1","status":"ACTIVE","version":${version},"updated_at":"t${version}"}`;

export const attempt = (of: Command, version: number, more: Partial<Attempt> = {}): Attempt => ({
  command: of,
  attempt: 1,
  via: "entitlement_1",
  from: startedAt,
  to: startedAt + 10,
  end: "ok",
  status: 200,
  answer: sampleResponse(version),
  replayed: false,
  ...more,
});

/** One change of one row; by default the claim of a ready row. */
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

/** The settlement of `claimed` by the same process. */
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

export const orderCommand = (id: string, more: Partial<Command> = {}): Command =>
  command(id, { service: "orders", kind: "order", path: "/do/order", body: { order_id: id }, ...more });

const orderAnswer = (id: string, status: string): string =>
  JSON.stringify({ order_id: id, status, request_digest: "sha256:1" });

export const orderAttempt = (of: Command, status = "accepted", more: Partial<Attempt> = {}): Attempt =>
  attempt(of, 0, { via: "orders_1", status: 201, answer: orderAnswer(of.id, status), ...more });

/** The broker's name of the only order. */
const nameAtBroker = `tdk-${hash("sha256", "shop\0key-o1", "hex").slice(0, 40)}`;

export const taken = (more: Partial<Taken["order"]> = {}): Taken => ({
  kind: "taken",
  at: startedAt + 50,
  order: {
    client_order_id: nameAtBroker,
    broker_order_id: "b1",
    instrument: "BTC-USD",
    side: "BUY",
    qty: "1",
    filled_qty: "1",
    price: "100",
    status: "filled",
    taken_at: "t",
    ...more,
  },
});

const pointsAnswer = JSON.stringify({ transaction_id: "t1", user_id: "u_1", version: 1 });

const pointsCommand = (id: string, kind: string): Command =>
  command(id, { service: "points", kind, path: `/points/${kind}` });

const sha256 = (text: string) => `sha256:${hash("sha256", text, "hex")}`;

/** Rows of one order that was sent, taken and published. */
const ordersWell: Evidence["tables"] = {
  "orders/orders": [
    {
      command: "o1",
      caller: "shop",
      idempotency_key: "key-o1",
      client_order_id: nameAtBroker,
      request_digest: "sha256:1",
      status: "succeeded",
      broker_order_id: "b1",
      evidence_digest: sha256(JSON.stringify(taken().order)),
      last_error_code: null,
      created_at: startedAt + 5,
    },
  ],
  "orders/ledger": [
    {
      command: "o1",
      status: "succeeded",
      request_digest: "sha256:1",
      answer: orderAnswer("o1", "succeeded"),
      result_digest: sha256("a"),
      digest: sha256("a"),
    },
  ],
  "orders/steps": [null, "pending", "sending"].map((from_status, n) => ({
    command: "o1",
    place: n + 1,
    from_status,
    to_status: ["pending", "sending", "succeeded"][n] as string,
  })),
  "orders/events": ["OrderAccepted", "OrderSucceeded"].map((event_type, n) => ({
    event_id: `oe${n}`,
    event_type,
    aggregate: nameAtBroker,
    version: 1 + 2 * n,
    status: "PUBLISHED",
    position: n + 1,
    attempt_count: 1,
    last_error: null,
    command: "o1",
  })),
};

/** Notifications of the events of that order. */
const orderTold = [0, 1].map((n) => ({
  notification_id: `on${n}`,
  event_id: `oe${n}`,
  user_id: "shop",
  event_type: n === 0 ? "OrderAccepted" : "OrderSucceeded",
  status: "SENT",
  attempt_count: 1,
  lease_epoch: 1,
  last_error: null,
  created_at: startedAt + n,
}));

/** A reservation by a client, and one of a recurring grant. */
const pointsWell: Evidence["tables"] = {
  "points/reservations": ["r1", null].map((command, n) => ({
    id: `res${n}`,
    command,
    user_id: "u_1",
    status: "DONE",
    schedule_id: command === null ? "s1" : null,
    early_ms: -5,
    grants: 1,
  })),
  "points/schedules": [{ schedule_id: "s1", name: "daily", is_late: false, users: 1 }],
  "points/transactions": [
    { id: "t1", user_id: "u_1", kind: "ADD", version: 1, source: "chaos", command: "p1", refers_to: null },
  ],
  "points/keys": [{ scope: "shop ADD", idem_key: "key-p1", response_status: 200, answer: pointsAnswer }],
  "points/events": [
    {
      event_id: "pe1",
      event_type: "PointsGranted",
      aggregate: "u_1",
      version: 1,
      status: "PUBLISHED",
      position: 1,
      attempt_count: 1,
      last_error: null,
      transaction: "t1",
    },
  ],
};

/** A player who logs in, and is suspended while logged in; all services of the gateway and of matchmaking. */
const playersWell: Evidence["tables"] = {
  "account/users": [{ user_id: "u_1", status: "SUSPENDED", version: 2, subject: "player-1", created_events: 1 }],
  "gateway-bff/knownUsers": [{ user_id: "u_1", status: "SUSPENDED", account_version: 2, sessions: 0 }],
};

export const act = (more: Partial<Act> = {}): Act => ({
  act: "request",
  player: "player-1",
  session: "s1",
  path: "/v1/me",
  via: "gateway-bff_1",
  from: startedAt,
  to: startedAt + 10,
  status: 200,
  userId: "u_1",
  ...more,
});

/** A match of two players. */
const matchWell: Evidence["tables"] = {
  "matchmaking/ends": [1, 2].map((n) => ({
    ticket_id: `duel.${n}`,
    user_id: `m_${n}`,
    mode: "duel",
    status: "MATCHED",
    reason: null,
    match_id: "match1",
    team: n,
    joined_at: startedAt + n,
    expires_at: startedAt + 9_000,
    ended_at: startedAt + 100,
  })),
  "matchmaking/matches": [{ match_id: "match1", mode: "duel" }],
  "matchmaking/events": [
    {
      event_id: "me1",
      event_type: "MatchMade",
      aggregate: "match1",
      version: 1,
      status: "PUBLISHED",
      position: 1,
      attempt_count: 1,
      last_error: null,
      payload: JSON.stringify({
        match_id: "match1",
        mode: "duel",
        players: [1, 2].map((n) => ({ user_id: `m_${n}`, ticket_id: `duel.${n}` })),
      }),
    },
  ],
};

export const ticketResponse = (n: number, more: Partial<TicketResponse> = {}): TicketResponse => ({
  by: "join",
  user: `m_${n}`,
  mode: "duel",
  ticketId: `duel.${n}`,
  status: "QUEUED",
  sentAt: startedAt,
  receivedAt: startedAt + 5,
  ...more,
});

/** Two commands on one aggregate and one order, all published and sent. */
export function soundEvidence(): Evidence {
  const claimed = transition();
  return {
    facts: {
      seed: "1",
      bus: "postgres",
      services: services.map(({ name }) => name),
      startedAt,
      stoppedAt: startedAt + 10_000,
      quietAt: startedAt + 11_000,
      leaseMs: 2_500,
      timed: true,
      faults: [],
      exits: [],
    },
    history: [
      attempt(command("c1"), 1, { status: 201 }),
      attempt(command("c2"), 2),
      orderAttempt(orderCommand("o1")),
      orderAttempt(orderCommand("o1"), "succeeded", { attempt: 2, status: 200, replayed: true }),
      act(),
      act({ act: "suspend", from: startedAt + 20, to: startedAt + 30 }),
      act({ from: startedAt + 40, to: startedAt + 50, status: 403 }),
      ticketResponse(1),
      ticketResponse(2),
      attempt(pointsCommand("p1", "add"), 1, { answer: pointsAnswer }),
      attempt(pointsCommand("r1", "reserve"), 0, { status: 201, answer: `{"id":"res0"}` }),
    ],
    tables: {
      ...ordersWell,
      ...pointsWell,
      ...playersWell,
      ...matchWell,
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
        answer: sampleResponse(n),
      })),
      "notification/notifications": [1, 2]
        .map((n) => ({
          notification_id: `n${n}`,
          event_id: `e${n}`,
          user_id: "u_1",
          event_type: "EntitlementGranted",
          status: "SENT",
          attempt_count: 1,
          lease_epoch: 1,
          last_error: null,
          created_at: startedAt + n,
        }))
        .concat(orderTold as never)
        .concat([{ ...orderTold[0], notification_id: "pn1", event_id: "pe1" }] as never)
        .concat(
          [1, 2].map((n) => ({
            ...orderTold[0],
            notification_id: `mn${n}`,
            event_id: "me1",
            user_id: `m_${n}`,
          })) as never,
        ),
      "notification/processed": ["e1", "e2", "oe0", "oe1", "pe1", "me1"].map((event_id) => ({
        event_id,
        consumer: "notification",
        result: "effect",
      })),
      "notification/dead": [],
      "notification/deadEvents": [],
    },
    transitions: [claimed, settled(claimed)],
    arrivals: ["n1", "n2", "on0", "on1", "pn1", "mn1", "mn2"].map((webhookId) => ({
      at: startedAt,
      webhookId,
      body: `{"n":"${webhookId}"}`,
    })),
    audited: ["e1", "e2", "oe0", "oe1", "pe1", "me1"].map((eventId) => ({ eventId, aggregateKey: "u_1/item1" })),
    orderBroker: [taken()],
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
