/**
 * Sends almost valid requests, built from the OpenAPI documents, to every route. None gets a 5xx, a rejected request writes no
 * row, and neither does a GET.
 *
 * The requests are the same in every run, except for IDs and cursors of the services. FUZZ_SEED=<number> changes them; a
 * failure names the seed and the request.
 */

import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import type { AccessRule } from "@todoke/http";
import { startIdentityProvider } from "@todoke/identity";
import { repetitions } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rules } from "../access-rules.ts";
import { apiKeyFor, type ServiceName, startAll, tokenFor, type User } from "../all-services.ts";
import { type OpenApi, parseRoutes, type Route } from "../good-requests.ts";
import {
  type FuzzedRequest,
  fuzzedRequest,
  goodRequest,
  goodValue,
  type Parts,
  type Random,
  seededRandom,
} from "./fuzz.ts";

const seed = Number(process.env.FUZZ_SEED || 16);
const requestsPerRoute = repetitions(200);
const inFlightMax = 8;
// Per route, to keep the repetition of rejected requests short.
const rejectedMax = 50;

interface Target {
  readonly service: ServiceName;
  readonly url: string;
  readonly route: Route;
  readonly rule: AccessRule;
  readonly user: User;
}

let all: Awaited<ReturnType<typeof startAll>>;
let admin: User;
let targets: readonly Target[];
const started = new AsyncDisposableStack();
const agent = new Agent({ keepAlive: true, maxSockets: inFlightMax });

/** IDs and cursors from responses, by service and parameter name. */
const knownValues = new Map<string, string[]>();

/** These operations delete, suspend or change their user, so each has its own. The others share one user. */
const needsOwnUser = /delete|suspend|reinstate|Role/i;

beforeAll(async () => {
  const redirectUris = ["http://localhost:8080/login/callback"];
  const client = { clientId: "todoke", clientSecret: "s".repeat(32), redirectUris };
  const provider = started.use(await startIdentityProvider({ clients: [client], users: [] }));
  const settings = { OIDC_ISSUER: provider.issuer, OIDC_CLIENT_SECRET: client.clientSecret };
  all = started.use(await startAll({ settings }));
  started.defer(() => agent.destroy());
  admin = await all.createUser("admin");
  const shared = await all.createUser("fuzz");
  const found: Target[] = [];
  for (const { name: service, url } of all.running) {
    const path = service === "gateway-bff" ? "/openapi/gateway-bff.json" : "/openapi.json";
    const document = (await (await fetch(url + path)).json()) as OpenApi;
    for (const route of parseRoutes(document)) {
      const rule = rules[service][`${route.method} ${route.template}`];
      if (!rule) throw new Error(`access-rules.ts has no ${route.method} ${route.template} of ${service}`);
      const user = needsOwnUser.test(route.operationId) ? await all.createUser(`fuzz-${found.length}`) : shared;
      found.push({ service, url, route, rule, user });
    }
  }
  targets = found;
});
afterAll(() => started.disposeAsync());

/** A credential of every allowed kind of caller, always in the same order. */
async function listBearers({ service, rule, user }: Target): Promise<readonly (string | undefined)[]> {
  const tokenOf = (who: User) => (service === "gateway-bff" ? all.openSession(who) : tokenFor(service, who));
  return [
    ...(rule.isPublic ? [undefined] : []),
    ...(rule.key ? [apiKeyFor(rule.key)] : []),
    ...(rule.user ? [await tokenOf(user)] : []),
    ...(rule.staff ? [await tokenOf(admin)] : []),
    ...(rule.service ? [await tokenFor(service)] : []),
  ];
}

const fixedValues: Readonly<Record<string, string>> = { mode: "duel", service: "account" };

/** A valid request, as far as the document describes it. */
function buildParts({ service, route, user }: Target, random: Random): Parts {
  const inPath = (name: string) => {
    if (name === "user_id") return user.userId;
    const known = knownValues.get(`${service} ${name}`) ?? [];
    if (known.length > 0 && random.below(4) > 0) return random.pick(known);
    return fixedValues[name] ?? String(goodValue(random, name, route.pathSchemas[name] ?? {}));
  };
  const body = route.body && withUser(goodValue(random, "", route.body), user);
  // A key in the body must equal the header.
  const key = (body as { idempotency_key?: string } | undefined)?.idempotency_key ?? `fuzz-${random.below(1_000_000)}`;
  return {
    inPath: Object.fromEntries(route.inPath.map((name) => [name, inPath(name)])),
    inQuery: route.inQuery
      .filter(({ name }) => name !== "cursor" && random.below(3) === 0)
      .map(({ name, schema }) => [name, String(goodValue(random, name, schema))] as const),
    headers: {
      ...(route.needsKey && { "idempotency-key": key }),
      ...(route.method === "PATCH" && { "if-match": '"1"' }),
      ...(route.body && { "content-type": "application/json" }),
    },
    ...(body !== undefined && { body }),
    cursors: knownValues.get(`${service} next_cursor`) ?? [],
  };
}

/** Sets `user_id` to an existing user. */
const withUser = (body: unknown, { userId }: User): unknown =>
  typeof body === "object" && body !== null && "user_id" in body ? { ...body, user_id: userId } : body;

interface PlannedRequest {
  readonly target: Target;
  readonly request: FuzzedRequest;
  /** Index into `listBearers`. */
  readonly caller: number;
}

interface Sent extends PlannedRequest {
  readonly status: number;
}

async function send({ target, request }: PlannedRequest, bearer: string | undefined): Promise<number> {
  const { method, path, body } = request;
  const { hostname, port } = new URL(target.url);
  const headers = {
    ...request.headers,
    ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
    ...(body !== undefined && { "content-length": Buffer.byteLength(body) }),
  };
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  httpRequest({ agent, hostname, port, method, path, headers }, resolve).on("error", reject).end(body);
  const response = await promise;
  const status = response.statusCode ?? 0;
  // A stream has no end: its start is enough.
  if (response.headers["content-type"]?.startsWith("text/event-stream")) response.destroy();
  else if (status < 300) rememberValues(target, await text(response));
  else await text(response);
  return status;
}

function rememberValues({ service }: Target, response: string): void {
  for (const [, name = "", value = ""] of response.matchAll(
    /"(\w*_id|id|idempotency_key|next_cursor)":"([^"\\]{1,200})"/g,
  )) {
    const key = `${service} ${name}`;
    knownValues.set(key, [...(knownValues.get(key) ?? []), value].slice(-20));
  }
}

/** Sends all requests of one route, a few at a time, and returns the results in order. */
async function sendAll(planned: readonly PlannedRequest[]): Promise<readonly Sent[]> {
  const sent: Sent[] = [];
  const [first] = planned;
  if (!first) return sent;
  const bearers = await listBearers(first.target);
  const endsSession = first.target.route.operationId === "logOut";
  let next = 0;
  const sender = async () => {
    for (let at = next++; at < planned.length; at = next++) {
      const each = planned[at] as PlannedRequest;
      const [bearer] = endsSession ? await listBearers(each.target) : [bearers[each.caller]];
      sent[at] = { ...each, status: await send(each, bearer) };
    }
  };
  await Promise.all(Array.from({ length: inFlightMax }, sender));
  return sent;
}

async function fuzz(target: Target): Promise<readonly Sent[]> {
  const { service, route } = target;
  const name = Buffer.from(`${service} ${route.operationId}`);
  const random = seededRandom(name.reduce((sum, byte) => (Math.imul(sum, 31) + byte) | 0, seed));
  const callers = (await listBearers(target)).length;
  const planned = Array.from({ length: requestsPerRoute }, () => ({
    target,
    request: fuzzedRequest(route, buildParts(target, random), random),
    caller: random.below(callers),
  }));
  return sendAll(planned);
}

function describe({ target, request, status }: Sent): string {
  const shown = { ...request, ...(request.body !== undefined && { body: String(request.body) }) };
  return `FUZZ_SEED=${seed} ${target.service} ${target.route.operationId}: ${status} to ${JSON.stringify(shown)}`;
}

/** No 5xx, and enough requests pass authentication and limits. */
function expectNoServerError(sent: readonly Sent[]): void {
  expect(sent.filter(({ status }) => status >= 500 || status < 200).map(describe)).toEqual([]);
  const received = sent.filter(({ status }) => status !== 401 && status !== 403 && status !== 429);
  expect(received.length, `${sent[0]?.target.service} ${sent[0]?.target.route.operationId}`).toBeGreaterThan(
    requestsPerRoute / 10,
  );
}

const isRejected = ({ status }: Sent) => status >= 400 && status < 500 && status !== 401 && status !== 429;

/** Tables that only commands write, no worker; of ticket ends, those that a request can cause. */
const commandTables = [
  ...["users", "identities", "account_roles", "audit_logs", "idempotency_keys"].map((table) => `account.${table}`),
  ...["entitlements", "entitlement_audit", "idempotency_keys"].map((table) => `entitlement.${table}`),
  ...["idempotency_keys", "ticket_ends where reason = 'lost'"].map((table) => `matchmaking.${table}`),
  ...["point_holds", "point_reservations", "point_schedules", "point_schedule_users", "idempotency_keys"].map(
    (table) => `points.${table}`,
  ),
  ...["outbox_orders", "idempo_ledger", "cancel_requests", "trading_state", "trading_state_audit"].map(
    (table) => `orders.${table}`,
  ),
];

async function countRows(): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of commandTables)
    counts[table] = (await all.db.query(`select count(*)::int as rows from ${table}`)).rows[0].rows;
  return counts;
}

test("an almost valid command never gets a 5xx, and a rejected one writes no row", async () => {
  const empty = await countRows();
  const rejected: (readonly Sent[])[] = [];
  for (const target of targets.filter(({ route }) => route.method !== "GET")) {
    const sent = await fuzz(target);
    expectNoServerError(sent);
    rejected.push(sent.filter(isRejected).slice(0, rejectedMax));
  }
  expect(await countRows(), "some were accepted").not.toEqual(empty);
  // Rejected requests are repeated. If one is accepted now, the others are repeated without it.
  for (let remaining = rejected, attempt = 1; ; attempt++) {
    const before = await countRows();
    const sent: (readonly Sent[])[] = [];
    for (const some of remaining) sent.push(await sendAll(some));
    const after = await countRows();
    if (sent.flat().every(({ status }) => status >= 400)) {
      expect(after).toEqual(before);
      return;
    }
    expect(attempt, "rejected requests keep being accepted").toBeLessThan(5);
    remaining = sent.map((some) => some.filter(isRejected));
  }
});

test("an almost valid GET never gets a 5xx and writes no row", async () => {
  // Pages of one row, to get cursors.
  for (const target of targets.filter(({ route }) => route.inQuery.some(({ name }) => name === "cursor"))) {
    const parts = { ...buildParts(target, seededRandom(seed)), inQuery: [["limit", "1"]] as const };
    await sendAll([{ target, request: goodRequest(target.route, parts), caller: 0 }]);
  }
  const before = await countRows();
  for (const target of targets.filter(({ route }) => route.method === "GET")) expectNoServerError(await fuzz(target));
  expect(await countRows()).toEqual(before);
});
