/**
 * Every documented route of every service gets requests that are almost right, made from its own OpenAPI document. None is
 * answered with a 5xx, no request that is refused leaves a row behind, and no GET writes one.
 *
 * The requests are the same at every run, but for ids and cursors that the services gave out. FUZZ_SEED=<number> makes others;
 * a failure names the seed and the request.
 */

import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import type { AccessRule } from "@todoke/http";
import { startIdentityProvider } from "@todoke/identity";
import { repetitions } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { keyOf, type ServiceName, startAll, tokenFor, type User } from "../all-services.ts";
import { type OpenApi, type Route, routesOf } from "../good-requests.ts";
import { rules } from "../who-may.ts";
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
// Of each route: the second look at refused requests stays short.
const refusedMax = 50;

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

/** Values of path parameters that services have answered with, by service and name: ids of things that exist. */
const seen = new Map<string, string[]>();

/** Whoever these are about is deleted, suspended or given a role. Everything else is about one user, who so has much. */
const needsOwnUser = /delete|suspend|reinstate|Role/i;

beforeAll(async () => {
  const redirectUris = ["http://localhost:8080/login/callback"];
  const client = { clientId: "todoke", clientSecret: "s".repeat(32), redirectUris };
  const provider = started.use(await startIdentityProvider({ clients: [client], users: [] }));
  const settings = { OIDC_ISSUER: provider.issuer, OIDC_CLIENT_SECRET: client.clientSecret };
  all = started.use(await startAll({ settings }));
  started.defer(() => agent.destroy());
  admin = await all.makeUser("admin");
  const shared = await all.makeUser("fuzz");
  const found: Target[] = [];
  for (const { name: service, url } of all.running) {
    const document = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApi;
    for (const route of routesOf(document)) {
      const rule = rules[service][`${route.method} ${route.template}`];
      if (!rule) throw new Error(`who-may.ts says nothing of ${route.method} ${route.template} of ${service}`);
      const user = needsOwnUser.test(route.operationId) ? await all.makeUser(`fuzz-${found.length}`) : shared;
      found.push({ service, url, route, rule, user });
    }
  }
  targets = found;
});
afterAll(() => started.disposeAsync());

/** Everybody whom the rule lets in, always in the same order. */
async function bearersOf({ service, rule, user }: Target): Promise<readonly (string | undefined)[]> {
  const tokenOf = (who: User) => (service === "gateway-bff" ? all.openSession(who) : tokenFor(service, who));
  return [
    ...(rule.isPublic ? [undefined] : []),
    ...(rule.key ? [keyOf(rule.key)] : []),
    ...(rule.user ? [await tokenOf(user)] : []),
    ...(rule.admin ? [await tokenOf(admin)] : []),
    ...(rule.service ? [await tokenFor(service)] : []),
  ];
}

const fixedValues: Readonly<Record<string, string>> = { mode: "duel", service: "account" };

/** A good request, as far as the document says what that is. */
function partsOf({ service, route, user }: Target, random: Random): Parts {
  const inPath = (name: string) => {
    if (name === "user_id") return user.userId;
    const known = seen.get(`${service} ${name}`) ?? [];
    if (known.length > 0 && random.below(4) > 0) return random.pick(known);
    return fixedValues[name] ?? String(goodValue(random, name, route.pathSchemas[name] ?? {}));
  };
  const body = route.body && withUser(goodValue(random, "", route.body), user);
  // Where a body has its key too, the two must be the same.
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
    cursors: seen.get(`${service} next_cursor`) ?? [],
  };
}

/** What a body says of a user is said of one that exists. */
const withUser = (body: unknown, { userId }: User): unknown =>
  typeof body === "object" && body !== null && "user_id" in body ? { ...body, user_id: userId } : body;

interface Wanted {
  readonly target: Target;
  readonly request: FuzzedRequest;
  /** Which of `bearersOf` sends it. */
  readonly caller: number;
}

interface Sent extends Wanted {
  readonly status: number;
}

async function send({ target, request }: Wanted, bearer: string | undefined): Promise<number> {
  const { method, path, body } = request;
  const { hostname, port } = new URL(target.url);
  const headers = {
    ...request.headers,
    ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
    ...(body !== undefined && { "content-length": Buffer.byteLength(body) }),
  };
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  httpRequest({ agent, hostname, port, method, path, headers }, resolve).on("error", reject).end(body);
  const answer = await promise;
  const status = answer.statusCode ?? 0;
  // A stream has no end; that it was begun is all there is to know.
  if (answer.headers["content-type"]?.startsWith("text/event-stream")) answer.destroy();
  else if (status < 300) keepSeen(target, await text(answer));
  else await text(answer);
  return status;
}

function keepSeen({ service }: Target, answer: string): void {
  for (const [, name = "", value = ""] of answer.matchAll(
    /"(\w*_id|id|idempotency_key|next_cursor)":"([^"\\]{1,200})"/g,
  )) {
    const place = `${service} ${name}`;
    seen.set(place, [...(seen.get(place) ?? []), value].slice(-20));
  }
}

/** Sends all to one route, a few at a time, and returns what each was answered, in order. */
async function sendAll(wanted: readonly Wanted[]): Promise<readonly Sent[]> {
  const sent: Sent[] = [];
  const [first] = wanted;
  if (!first) return sent;
  const bearers = await bearersOf(first.target);
  const endsSession = first.target.route.operationId === "logOut";
  let next = 0;
  const lane = async () => {
    for (let at = next++; at < wanted.length; at = next++) {
      const each = wanted[at] as Wanted;
      const [bearer] = endsSession ? await bearersOf(each.target) : [bearers[each.caller]];
      sent[at] = { ...each, status: await send(each, bearer) };
    }
  };
  await Promise.all(Array.from({ length: inFlightMax }, lane));
  return sent;
}

async function fuzz(target: Target): Promise<readonly Sent[]> {
  const { service, route } = target;
  const name = Buffer.from(`${service} ${route.operationId}`);
  const random = seededRandom(name.reduce((sum, byte) => (Math.imul(sum, 31) + byte) | 0, seed));
  const callers = (await bearersOf(target)).length;
  const wanted = Array.from({ length: requestsPerRoute }, () => ({
    target,
    request: fuzzedRequest(route, partsOf(target, random), random),
    caller: random.below(callers),
  }));
  return sendAll(wanted);
}

function tell({ target, request, status }: Sent): string {
  const shown = { ...request, ...(request.body !== undefined && { body: String(request.body) }) };
  return `FUZZ_SEED=${seed} ${target.service} ${target.route.operationId}: ${status} to ${JSON.stringify(shown)}`;
}

/** Nothing fails, and enough of it is refused, or done, for what it says and not for who sent it. */
function expectAnswered(sent: readonly Sent[]): void {
  expect(sent.filter(({ status }) => status >= 500 || status < 200).map(tell)).toEqual([]);
  const heard = sent.filter(({ status }) => status !== 401 && status !== 403 && status !== 429);
  expect(heard.length, `${sent[0]?.target.service} ${sent[0]?.target.route.operationId}`).toBeGreaterThan(
    requestsPerRoute / 10,
  );
}

const isRefused = ({ status }: Sent) => status >= 400 && status < 500 && status !== 401 && status !== 429;

/** Tables that only commands write: no worker adds a row on its own. Of ends of tickets, those that a request can cause. */
const counted = [
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

async function rowsIn(): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of counted)
    counts[table] = (await all.db.query(`select count(*)::int as rows from ${table}`)).rows[0].rows;
  return counts;
}

test("no almost good command of any route fails with a 5xx, and those that are refused leave no row", async () => {
  const empty = await rowsIn();
  const refused: (readonly Sent[])[] = [];
  for (const target of targets.filter(({ route }) => route.method !== "GET")) {
    const sent = await fuzz(target);
    expectAnswered(sent);
    refused.push(sent.filter(isRefused).slice(0, refusedMax));
  }
  expect(await rowsIn(), "some were accepted").not.toEqual(empty);
  // What was refused is sent once more, by itself. Should one be accepted by now, the others are sent a third time without it.
  for (let again = refused, tries = 1; ; tries++) {
    const before = await rowsIn();
    const sent: (readonly Sent[])[] = [];
    for (const some of again) sent.push(await sendAll(some));
    const after = await rowsIn();
    if (sent.flat().every(({ status }) => status >= 400)) {
      expect(after).toEqual(before);
      return;
    }
    expect(tries, "refused requests are accepted again and again").toBeLessThan(5);
    again = sent.map((some) => some.filter(isRefused));
  }
});

test("no almost good GET of any route fails with a 5xx, and none writes a row", async () => {
  // Pages of one row each, so that there are cursors to begin with.
  for (const target of targets.filter(({ route }) => route.inQuery.some(({ name }) => name === "cursor"))) {
    const parts = { ...partsOf(target, seededRandom(seed)), inQuery: [["limit", "1"]] as const };
    await sendAll([{ target, request: goodRequest(target.route, parts), caller: 0 }]);
  }
  const before = await rowsIn();
  for (const target of targets.filter(({ route }) => route.method === "GET")) expectAnswered(await fuzz(target));
  expect(await rowsIn()).toEqual(before);
});
