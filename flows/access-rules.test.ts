/** Every route of every service, called by every kind of caller: declared rules match access-rules.ts, and routes obey them. */
import { existsSync, readFileSync } from "node:fs";
import { isAllowed, type Principal, scopes } from "@todoke/http";
import { fixedId } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rules } from "./access-rules.ts";
import {
  apiKeyFor,
  keyHolder,
  type RouteOptions,
  type RunningService,
  type ServiceName,
  startAll,
  tokenFor,
  type User,
} from "./all-services.ts";

type All = Awaited<ReturnType<typeof startAll>>;
type Users = Readonly<Record<"alice" | "bob" | "admin" | "operator" | "viewer" | "suspended", User>>;

interface Caller {
  readonly name: string;
  /** The expected principal; missing if the service must not recognise the caller. */
  readonly principal?: Principal;
  readonly suspended?: true;
  bearer(): Promise<string | undefined>;
}

/** Every kind of caller. Players have a session at the gateway and a token at the other services. */
function listCallers(service: ServiceName, users: Users, { openSession }: All): Caller[] {
  const atGateway = service === "gateway-bff";
  const known = (principal: Principal) => (atGateway ? {} : { principal });
  const user = (name: string, account: User, more: object = {}): Caller => ({
    name,
    principal: { kind: "user", name: `user:${account.userId}`, userId: account.userId, roles: account.roles },
    ...more,
    // A new session for every call, because some calls end it.
    bearer: () => (atGateway ? openSession(account) : tokenFor(service, account)),
  });
  return [
    { name: "anonymous", bearer: async () => undefined },
    { name: "an unknown key", bearer: async () => "tdk_stranger" },
    user("the player", users.alice),
    user("another player", users.bob),
    user("an admin", users.admin),
    user("an operator", users.operator),
    user("a viewer", users.viewer),
    ...(atGateway ? [user("a suspended player", users.suspended, { suspended: true })] : []),
    {
      name: "the gateway",
      ...known({ kind: "service", name: "service:gateway-bff" }),
      bearer: () => tokenFor(service),
    },
    {
      name: "an admin's token for another service",
      bearer: () => tokenFor(service === "account" ? "points" : "account", users.admin),
    },
    {
      name: "an admin's session at a service",
      bearer: async () => (atGateway ? "tds_short" : openSession(users.admin)),
    },
    ...scopes.map((scope) => ({
      name: `a key for ${scope}`,
      ...known({ kind: "key", name: keyHolder(scope), scopes: [scope] }),
      bearer: async () => apiKeyFor(scope),
    })),
  ];
}

/** The expected result: the caller is allowed ("in"), not recognised (401) or rejected (403). */
function expectedResult(caller: Caller, { config }: RouteOptions, userId: string): "in" | 401 | 403 {
  const rule = config?.rule ?? {};
  if (rule.isPublic) return "in";
  if (!caller.principal) return 401;
  if (caller.suspended && !config?.inactiveToo) return 403;
  return isAllowed(caller.principal, rule, { user_id: userId }) ? "in" : 403;
}

/** The path of a route with every parameter replaced. */
function fillPath(url: string, replace: (name: string) => string): string {
  const fill = (part: string) => part.replace(/:(\w+)(?:\([^)]*\))?/g, (_, name: string) => replace(name));
  return url.split("::").map(fill).join(":");
}

/** The path for one user; other parameters name things that do not exist. */
function pathFor(url: string, userId: string): string {
  const values: Record<string, string> = { user_id: userId, service: "account", session_id: fixedId(99) };
  return fillPath(url, (name) => values[name] ?? "x");
}

/** Sends an empty body, so that an allowed call is rejected as invalid and has no effect. */
async function send(url: string, method: string, bearer: string | undefined): Promise<"in" | 401 | 403> {
  const hasBody = method !== "GET" && method !== "DELETE";
  const response = await fetch(url, {
    method,
    redirect: "manual",
    headers: {
      ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      ...(hasBody && { "content-type": "application/json" }),
      "x-user-id": fixedId(1),
      "x-user-roles": "ADMIN",
    },
    ...(hasBody && { body: "{}" }),
  });
  await response.body?.cancel();
  return response.status === 401 || response.status === 403 ? response.status : "in";
}

const rulesByRoute = (routes: RunningService["routes"]) =>
  Object.fromEntries(
    routes.map(({ method, route }) => {
      const path = fillPath(route.url, (name) => `{${name}}`).replace(/\.[0-9a-f]{16}\./, ".{hash}.");
      return [`${method} ${path}`, route.config?.rule];
    }),
  );

let all: All;
beforeAll(async () => {
  all = await startAll();
});
afterAll(() => all[Symbol.asyncDispose]());

test("every route has the access rule of the table, and rejects every other caller", async () => {
  const users = {
    alice: await all.createUser("alice"),
    bob: await all.createUser("bob"),
    admin: await all.createUser("admin"),
    operator: await all.createUser("operator"),
    viewer: await all.createUser("viewer"),
    suspended: await all.createUser("suspended"),
  };
  await all.db.query(
    `insert into gateway_bff.known_users (user_id, status, roles, account_version) values ($1, 'SUSPENDED', '{USER}', 2)
         on conflict (user_id) do update set status = 'SUSPENDED', account_version = 2`,
    [users.suspended.userId],
  );

  expect(Object.fromEntries(all.running.map(({ name, routes }) => [name, rulesByRoute(routes)]))).toEqual(rules);

  const wrong: unknown[] = [];
  let sentCount = 0;
  for (const { name, url, routes } of all.running)
    for (const caller of listCallers(name, users, all))
      for (const { method, route } of routes) {
        // A suspended player calls for their own data, so only the suspension can reject them.
        const { userId } = caller.suspended ? users.suspended : users.alice;
        const expected = expectedResult(caller, route, userId);
        const found = await send(url + pathFor(route.url, userId), method, await caller.bearer());
        if (found !== expected) wrong.push([name, method, route.url, caller.name, { expected, found }]);
        sentCount++;
      }
  expect(wrong).toEqual([]);
  expect(sentCount).toBeGreaterThan(500);
}, 300_000);

/** The routes that every service has for staff. */
const sharedCommands = "../packages/service/staff";

/**
 * `grantEntitlement` is in commands/grant-entitlement.ts of its service, which exports a function of that name. The second path
 * of a command has the suffix V1.
 */
function isCommand(service: ServiceName, operationId: string): boolean {
  const name = operationId.replace(/V1$/, "");
  const file = `${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}.ts`;
  const paths = [`../services/${service}/commands`, sharedCommands].map(
    (folder) => new URL(`${folder}/${file}`, import.meta.url),
  );
  const exported = new RegExp(`^export (async )?(function|const) ${name}\\b`, "m");
  return paths.some((path) => existsSync(path) && exported.test(readFileSync(path, "utf8")));
}

test("every route that changes something has a command of the same name", () => {
  const isChange = ({ method, route }: RunningService["routes"][number]) =>
    !["GET", "HEAD", "OPTIONS"].includes(method) && !route.url.startsWith("/debug/");
  const operations = all.running.flatMap(({ name, routes }) =>
    routes.filter(isChange).map(({ route }) => ({ name, operationId: route.schema?.operationId ?? route.url })),
  );
  // The gateway forwards calls under the names that the services gave them.
  const owned = new Set(operations.flatMap(({ name, operationId }) => (name === "gateway-bff" ? [] : operationId)));
  const missing = operations.filter(
    ({ name, operationId }) => !(name === "gateway-bff" && owned.has(operationId)) && !isCommand(name, operationId),
  );
  expect(missing).toEqual([]);
  expect(operations.length).toBeGreaterThan(30);
});
