/**
 * One request of every operation, in an order in which each finds what it needs, sent to running services. `npm run examples`
 * records them as the examples of the API documents; api-documents.test.ts sends them again and compares.
 */
import { hash, randomUUID } from "node:crypto";
import type { Example } from "@todoke/contracts/api";
import { apiKeyFor, type ServiceName, type startAll, tokenFor, type User } from "./all-services.ts";
import type { ApiDocument } from "./api-faults.ts";

type All = Awaited<ReturnType<typeof startAll>>;
type Request = Example["request"];
type Json = Readonly<Record<string, unknown>>;

/** A request that would need an order whose result is unknown: it is shown, and not sent. */
const unsent = {
  resolveOrder: { path: { id: "2" }, body: { as: "taken", reason: "it is in the broker's books" } },
} as const satisfies Readonly<Record<string, Request>>;

/**
 * Operations whose example is not sent: those of a login need a browser and a provider, streams do not end, and the others
 * need an event or a notification that cannot succeed.
 */
export const withoutExample: ReadonlySet<string> = new Set([
  "logIn",
  "finishLogIn",
  "fetchSessionToken",
  "endByProvider",
  "followInbox",
  "followUserInbox",
  "getFailedEvent",
  "redriveFailedEvent",
  "getDeadEvent",
  "redriveEvent",
  "discardDeadLetter",
  "getDeadNotification",
  "redriveNotification",
  ...Object.keys(unsent),
]);

interface Target {
  readonly url: string;
  readonly service: ServiceName;
  readonly method: string;
  readonly path: string;
  readonly needsKey: boolean;
}

/** Where each operation is. Several services may have it. */
const findTargets = (all: All, documents: Readonly<Record<string, ApiDocument>>): Map<string, Target[]> =>
  Map.groupBy(
    all.running.flatMap(({ name: service, url }) =>
      Object.entries(documents[service]?.paths ?? {}).flatMap(([path, item]) =>
        Object.entries(item).map(([method, { operationId = "", parameters = [] }]) => {
          const needsKey = parameters.some(({ $ref }) => $ref === "#/components/parameters/IdempotencyKey");
          return { operationId, url, service, method: method.toUpperCase(), path, needsKey };
        }),
      ),
    ),
    ({ operationId }) => operationId,
  );

interface Caller {
  /** Calls this service, if several have the operation. */
  readonly at?: ServiceName;
  /** Calls the gateway, if it has the operation. */
  readonly isPlayer?: true;
  bearer(service: ServiceName): Promise<string>;
}

export async function runExamples(
  all: All,
  documents: Readonly<Record<string, ApiDocument>>,
): Promise<Map<string, Example>> {
  const targets = findTargets(all, documents);
  const examples = new Map<string, Example>(Object.entries(unsent).map(([id, request]) => [id, { request }]));

  const backend = (scope: string): Caller => ({ bearer: async () => apiKeyFor(scope) });
  const player = (user: User): Caller => ({
    isPlayer: true,
    bearer: (service) => (service === "gateway-bff" ? all.openSession(user) : tokenFor(service, user)),
  });
  const gateway: Caller = { bearer: (service) => tokenFor(service) };

  async function call(operationId: string, caller: Caller, request: Request = {}): Promise<Json> {
    const found = targets.get(operationId) ?? [];
    const isWanted = ({ service }: Target) =>
      caller.at ? service === caller.at : (service === "gateway-bff") === (caller.isPlayer ?? false);
    const target = found.find(isWanted) ?? found[0];
    if (!target) throw new Error(`no document has the operation ${operationId}`);
    const { service, method, needsKey } = target;
    const headers = { ...(needsKey && { "idempotency-key": randomUUID() }), ...request.headers };
    const path = target.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(request.path?.[name] ?? ""));
    const query = new URLSearchParams(
      Object.entries(request.query ?? {}).map(([name, value]) => [name, String(value)]),
    );
    const response = await fetch(`${target.url}${path}${query.size > 0 ? `?${query}` : ""}`, {
      method,
      headers: {
        authorization: `Bearer ${await caller.bearer(service)}`,
        ...headers,
        ...(request.body !== undefined && { "content-type": "application/json" }),
      },
      ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${operationId} is answered with ${response.status}: ${text}`);
    const isJson = response.headers.get("content-type")?.startsWith("application/json");
    const result = isJson ? JSON.parse(text) : text;
    const sent = { ...request, ...(Object.keys(headers).length > 0 && { headers }) };
    examples.set(operationId, { request: sent, status: response.status, ...(text !== "" && { response: result }) });
    return isJson ? { ...result, etag: response.headers.get("etag") } : {};
  }

  const users = await runAccount({ call, gateway, player, all });
  await runEntitlements({ call, backend, ...users });
  await runPoints({ call, backend, ...users });
  await runSchedules({ call, backend, ...users });
  await runMatchmaking({ call, backend, player, ...users });
  await runOrders({ call, player, ...users });
  await runStaff({ call, player, gateway, ...users });
  await runActs({ call, player, all, ...users });
  await runGateway({ call, backend, player, gateway, ...users });
  await runOperations({ call, gateway, ...users });
  return examples;
}

interface Parts {
  call(operationId: string, caller: Caller, request?: Request): Promise<Json>;
  backend(scope: string): Caller;
  player(user: User): Caller;
  readonly gateway: Caller;
  readonly all: All;
  readonly alice: User;
  readonly bob: User;
  readonly admin: User;
}

async function runAccount({ call, gateway, player, all }: Pick<Parts, "call" | "gateway" | "player" | "all">) {
  const admin = await all.createUser("admin");
  const identity = { provider: "https://id.example", subject: "248289", display_name: "Aki", locale: "ja-JP" };
  const { user_id, roles, version } = await call("resolveIdentity", gateway, {
    body: { ...identity, email: "aki@example.com", email_verified: true },
  });
  const alice = { userId: user_id, roles, version } as unknown as User;
  const bob = await all.createUser("bob");
  const path = { user_id: alice.userId };
  const asAdmin = player(admin);
  const { etag } = await call("getUser", player(alice), { path });
  const body = { display_name: "Aki", locale: "en-GB" };
  await call("updateUser", player(alice), { path, headers: { "if-match": String(etag) }, body });
  await call("listDisplayNames", gateway, { query: { user_ids: alice.userId } });
  await call("searchUsers", asAdmin, { query: { email: "aki@example.com" } });
  const bobs = { path: { user_id: bob.userId } };
  await call("suspendUser", asAdmin, { ...bobs, body: { reason: "cheating", until: "2999-01-31T09:30:00Z" } });
  await call("reinstateUser", asAdmin, { ...bobs, body: { reason: "appeal" } });
  await call("grantRole", asAdmin, { ...bobs, body: { role: "ADMIN", reason: "on call" } });
  await call("revokeRole", asAdmin, { ...bobs, body: { role: "ADMIN", reason: "off call" } });
  await call("listAudit", asAdmin, { query: { user_id: bob.userId, limit: 2 } });
  await call("exportUser", player(alice), { path });
  const leaving = await all.createUser("leaving");
  await call("deleteUser", player(leaving), {
    path: { user_id: leaving.userId },
    body: { reason: "requested by mail" },
  });
  return { alice, bob, admin };
}

async function runEntitlements({ call, backend, alice }: Pick<Parts, "call" | "backend" | "alice">) {
  const writer = backend("entitlements:write");
  const reader = backend("read");
  const path = { user_id: alice.userId };
  const change = { user_id: alice.userId, stock_keeping_unit: "gold-pass", reason: "purchase", purchase_id: "p_456" };
  await call("grantEntitlement", writer, { body: { ...change, expires_at: "2999-01-31T09:30:00Z" } });
  await call("changeEntitlements", writer, {
    body: { items: [{ ...change, action: "grant", stock_keeping_unit: "red-hat", idempotency_key: randomUUID() }] },
  });
  await call("revokeEntitlement", writer, {
    body: { ...change, stock_keeping_unit: "red-hat", reason: "refund" },
  });
  await call("listEntitlements", reader, { path });
  await call("checkEntitlement", reader, { path: { ...path, stock_keeping_unit: "gold-pass" } });
  await call("listEntitlementHistory", reader, { path: { ...path, stock_keeping_unit: "red-hat" } });
}

async function runPoints({ call, backend, alice }: Pick<Parts, "call" | "backend" | "alice">) {
  const [writer, reader] = [backend("points:write"), backend("read")];
  const user_id = alice.userId;
  const path = { user_id };
  const origin = { source: "order", source_id: "o_456" };
  await call("addPoints", writer, { body: { user_id, point_amount: 1_000, reason: "campaign" } });
  const expiring = { user_id, point_amount: 500, expires_at: new Date(Date.now() + 86_400_000).toISOString() };
  await call("addPointsV1", writer, { body: { ...expiring, reason: "campaign" } });
  const { transaction_id } = await call("spendPoints", writer, { body: { user_id, point_amount: 250, ...origin } });
  await call("spendPointsV1", writer, { body: { user_id, point_amount: 100, ...origin } });
  await call("refundPoints", writer, { body: { transaction_id, point_amount: 50, reason: "damaged" } });
  const hold = () => call("placeHold", writer, { body: { user_id, point_amount: 40, ttl_seconds: 900, ...origin } });
  const captured = { path: { hold_id: String((await hold()).hold_id) } };
  await call("captureHold", writer, { ...captured, body: { point_amount: 30, ...origin } });
  await call("getHold", reader, captured);
  const released = { path: { hold_id: String((await hold()).hold_id) } };
  await call("releaseHold", writer, { ...released, body: { reason: "cancelled" } });
  const reservation = { user_id, point_amount: 100, execute_at: "2999-01-15T10:00:00+09:00", reason: "campaign" };
  await call("reservePoints", writer, { body: reservation });
  const { id: reservation_id } = await call("reservePointsV1", writer, { body: reservation });
  await call("reservePointsBatch", writer, { body: { items: [{ ...reservation, idempotency_key: randomUUID() }] } });
  const reserved = { path: { reservation_id: String(reservation_id) } };
  await call("getReservation", reader, reserved);
  await call("cancelReservation", writer, reserved);
  await call("getPoints", reader, { query: { user_id } });
  await call("getBalance", reader, { path });
  await call("listStatement", reader, { path, query: { limit: 2 } });
  await call("getStatementCsv", reader, { path });
  await call("listExpiring", reader, { path });
  await call("listReservations", reader, { path, query: { status: "PENDING" } });
  await call("listReservedPoints", reader, { path });
}

async function runSchedules({ call, backend, alice, bob }: Pick<Parts, "call" | "backend" | "alice" | "bob">) {
  const [writer, reader] = [backend("points:write"), backend("read")];
  const schedule = { name: "daily-bonus", cron: "0 9 * * *", time_zone: "Asia/Tokyo", point_amount: 10 };
  const { schedule_id } = await call("createSchedule", writer, { body: { ...schedule, reason: "campaign" } });
  const one = { path: { schedule_id: String(schedule_id) } };
  const user_ids = [alice.userId, bob.userId];
  await call("addScheduleUsers", writer, { ...one, body: { user_ids } });
  await call("listScheduleUsers", reader, one);
  await call("removeScheduleUsers", writer, { ...one, body: { user_ids: [bob.userId] } });
  await call("listSchedules", reader);
  await call("getSchedule", reader, one);
  await call("pauseSchedule", writer, one);
  await call("resumeSchedule", writer, one);
  await call("endSchedule", writer, one);
}

async function runMatchmaking({
  call,
  backend,
  player,
  alice,
  bob,
}: Pick<Parts, "call" | "backend" | "player" | "alice" | "bob">) {
  const me = player(alice);
  const { queues } = await call("listQueues", me);
  const [mode = ""] = (queues as readonly { readonly mode: string }[]).map((queue) => queue.mode);
  await call("getQueueStats", me, { path: { mode } });
  const ticketOf = async () => String((await call("joinQueue", me, { path: { mode }, body: {} })).ticket_id);
  const path = { ticket_id: await ticketOf() };
  await call("getTicket", me, { path });
  await call("getCurrentTicket", me);
  await call("heartbeatTicket", me, { path });
  await call("cancelTicket", me, { path });
  await call("listTickets", me, { query: { limit: 1 } });
  const asBackend = backend("matchmaking:write");
  await call("joinQueueForUser", asBackend, { path: { user_id: bob.userId, mode }, body: { party_size: 1 } });
}

async function runOrders({ call, player, admin }: Pick<Parts, "call" | "player" | "admin">) {
  // A key sees the orders that it has placed; an admin, all of them.
  const desk = player(admin);
  const place = (order_id: string) => {
    const idempotency_key = randomUUID();
    const order = { order_id, instrument: "BTC-USD", side: "BUY", qty: "0.5", price: "30000.5" };
    return call("acceptOrder", desk, {
      headers: { "idempotency-key": idempotency_key },
      body: { idempotency_key, ...order, requested_at: "2026-01-31T09:30:00Z" },
    }).then(() => idempotency_key);
  };
  const cancelled = { path: { idempotency_key: await place("o-1001") } };
  const key = { path: { idempotency_key: await place("o-1002") } };
  await call("getOrderByKey", desk, key);
  await call("cancelOrder", desk, cancelled);
  const { orders } = await call("listOrders", desk, { query: { limit: 2 } });
  const id = String((orders as readonly { readonly id: string }[])[0]?.id ?? "");
  await call("listUnresolvedOrders", desk);
  await call("getOrder", desk, { path: { id } });
  await call("listOrderHistory", desk, { path: { id } });
  await call("listOrderFills", desk, { path: { id } });
  await call("listPositions", desk);
  await call("cancelAllOrders", desk, { body: { instrument: "BTC-USD" } });
  await call("setTradingStateOfInstrument", desk, {
    path: { instrument: "BTC-USD" },
    body: { mode: "cancel-only", reason: "prices look wrong" },
  });
  await call("setTradingState", desk, { body: { mode: "active", reason: "prices are right again" } });
  await call("getTradingState", desk);
}

async function runGateway({
  call,
  backend,
  player,
  alice,
}: Pick<Parts, "call" | "backend" | "player" | "gateway" | "alice">) {
  const me = player(alice);
  const path = { user_id: alice.userId };
  await call("getMe", me);
  await call("getProfile", me, { path });
  await call("getMyProfile", me, { query: { fields: "account.display_name,points.balance" } });
  await call("listInbox", me, { query: { limit: 1 } });
  await call("listUserInbox", backend("read"), { path, query: { limit: 1 } });
  await call("listSessions", me);
  const { sessions } = await call("listSessions", me);
  const [other] = (sessions as readonly { readonly session_id: string; readonly current: boolean }[]).filter(
    ({ current }) => !current,
  );
  await call("endSession", me, { path: { session_id: other?.session_id ?? "" } });
  await call("endOtherSessions", me);
  await call("logOut", me);
}

/** Requests of the console. */
async function runStaff({
  call,
  player,
  gateway,
  admin,
  alice,
}: Pick<Parts, "call" | "player" | "gateway" | "admin" | "alice">) {
  const staff = player(admin);
  for (const id of ["listAuditLog", "getOverview", "listKeys", "listAllDeadLetterGroups"]) await call(id, staff);
  for (const id of ["listReconciliations", "listLateReservations", "listUpcomingReservations", "getMatchmakingRules"])
    await call(id, staff);
  const reason = "the shop's new server";
  const key_id = randomUUID();
  const newKey = { key_id, sha256: hash("sha256", `tdk_${key_id}`), holder: "shop", scopes: ["entitlements:write"] };
  const body = { ...newKey, services: ["entitlement"], expires_at: "2999-01-31T09:30:00Z", reason };
  await call("createKey", staff, { body });
  await call("revokeKey", staff, { path: { key_id }, body: { reason } });
  const path = { user_id: alice.userId };
  const query = { user_ids: alice.userId };
  for (const id of ["getUsers", "listEntitlementsOfUsers", "getCurrentTickets", "getBalances"])
    await call(id, gateway, { query });
  for (const id of ["listUserNotifications", "listUserTickets", "listUserSessions"]) await call(id, staff, { path });
  await call("explainId", staff, { path: { id: alice.userId } });
  await call("listDeadLetters", staff, { path: { service: "points", table: "inbox_dlq" } });
  await call("listDeadLetterBatches", staff, { path: { service: "points" } });
  await call("getLastAudit", staff, { path: { service: "points" } });
  await call("simulateMode", staff, { path: { mode: "ranked" }, query: { players: 100 } });
}

/** What staff changes. */
async function runActs({
  call,
  player,
  all,
  admin,
  alice,
  bob,
}: Pick<Parts, "call" | "player" | "all" | "admin" | "alice" | "bob">) {
  const staff = player(admin);
  const path = { user_id: bob.userId };
  const item = { stock_keeping_unit: "red-hat", reason: "a lost purchase" };
  await call("grantEntitlementAsStaff", staff, { path, body: item });
  await call("revokeEntitlementAsStaff", staff, { path, body: { ...item, reason: "granted by mistake" } });
  await call("adjustPoints", staff, { path, body: { direction: "add", point_amount: 100, reason: "a late bonus" } });
  await call("endUserSessions", staff, { path, body: { reason: "a lost phone" } });
  const ofStaff = (at: ServiceName): Caller => ({ at, bearer: (service) => tokenFor(service, admin) });
  await call("explainIdHere", ofStaff("points"), { path: { id: alice.userId } });

  const [one, other] = [await killEvent(all), await killEvent(all)];
  await killEvent(all);
  const service = "entitlement";
  const table = { path: { service, table: "outbox_events" } };
  await call("listDeadLetterGroups", ofStaff(service));
  await call("getDeadLetter", staff, { path: { ...table.path, id: one } });
  await call("discardDeadLetters", staff, { ...table, body: { ids: [one], reason: "a test" } });
  await call("redriveDeadLetters", staff, { ...table, body: { ids: [other], reason: "the bus works again" } });
  const { through } = await call("previewDeadLetters", staff, table);
  const batch = { act: "redrive", table: "outbox_events", all: true, through, reason: "the bus works again" };
  const { batch_id } = await call("startDeadLetterBatch", staff, { path: { service }, body: batch });
  const started = { path: { service, batch_id: String(batch_id) } };
  await call("getDeadLetterBatch", staff, started);
  await call("stopDeadLetterBatch", staff, { ...started, body: { reason: "enough for today" } });
}

/** A copy of an event, as it is when its attempts are used up. */
async function killEvent({ db }: All): Promise<string> {
  const { rows } = await db.query(
    `insert into entitlement.outbox_events
       (event_id, event_type, subject, aggregate_key, version, payload, headers, status, attempt_count, last_error)
     select gen_random_uuid(), event_type, subject, aggregate_key, version + 1000, payload, headers, 'FAILED', 10, 'HTTP 410'
       from entitlement.outbox_events order by created_at desc limit 1
     returning event_id`,
  );
  return rows[0].event_id;
}

async function runOperations({ call, gateway, alice }: Pick<Parts, "call" | "gateway" | "alice">) {
  await call("listFailedEvents", gateway);
  await call("listDeadEvents", gateway);
  await call("listDeadNotifications", gateway);
  await call("getInbox", gateway, { path: { user_id: alice.userId } });
  await call("listWork", gateway);
  await call("listOldestDue", gateway, { path: { table: "outbox_events" } });
  const path = { table: "notifications", column: "user_id", value: alice.userId };
  await call("listWorkOf", { ...gateway, at: "notification" }, { path });
  await call("getRules", gateway);
  await call("listDamagedTickets", gateway);
}
