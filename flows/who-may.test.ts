/**
 * Who may call what: every route of every service, by everybody that there is. What the routes declare is held to the table
 * in who-may.ts, and what they do is held to what they declare.
 */
import { existsSync, readFileSync } from "node:fs";
import { mayCall, type Principal, scopes } from "@todoke/http";
import { fixedId } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  holderOf,
  keyOf,
  type RouteOptions,
  type Running,
  type ServiceName,
  startAll,
  tokenFor,
  type User,
} from "./all-services.ts";
import { rules } from "./who-may.ts";

type All = Awaited<ReturnType<typeof startAll>>;
type Users = Readonly<Record<"alice" | "bob" | "admin" | "suspended", User>>;

interface Caller {
  readonly name: string;
  /** As the service should see them; nobody, where it should not know them. */
  readonly principal?: Principal;
  readonly suspended?: true;
  bearer(): Promise<string | undefined>;
}

/** Everybody that there is, as one service meets them: players come to the gateway with a session, elsewhere with a token. */
function callersAt(service: ServiceName, users: Users, { openSession }: All): Caller[] {
  const atGateway = service === "gateway-bff";
  const known = (principal: Principal) => (atGateway ? {} : { principal });
  const user = (name: string, who: User, more: object = {}): Caller => ({
    name,
    principal: { kind: "user", name: `user:${who.userId}`, userId: who.userId, roles: who.roles },
    ...more,
    // A session of its own for every call: some of them end it.
    bearer: () => (atGateway ? openSession(who) : tokenFor(service, who)),
  });
  return [
    { name: "nobody", bearer: async () => undefined },
    { name: "a stranger", bearer: async () => "tdk_stranger" },
    user("the player", users.alice),
    user("another player", users.bob),
    user("an admin", users.admin),
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
      ...known({ kind: "key", name: holderOf(scope), scopes: [scope] }),
      bearer: async () => keyOf(scope),
    })),
  ];
}

/** What the rule says: they get in (whatever becomes of it then), are not known, or are refused. */
function expectedOf(caller: Caller, { config }: RouteOptions, userId: string): "in" | 401 | 403 {
  const rule = config?.rule ?? {};
  if (rule.everybody) return "in";
  if (!caller.principal) return 401;
  if (caller.suspended && !config?.inactiveToo) return 403;
  return mayCall(caller.principal, rule, { user_id: userId }) ? "in" : 403;
}

/** The path of a route as it is called, with every name in it replaced. */
function filled(url: string, replace: (name: string) => string): string {
  const fill = (part: string) => part.replace(/:(\w+)(?:\([^)]*\))?/g, (_, name: string) => replace(name));
  return url.split("::").map(fill).join(":");
}

/** For one user; other names in it are of things that do not exist. */
function pathOf(url: string, userId: string): string {
  const values: Record<string, string> = { user_id: userId, service: "account", session_id: fixedId(99) };
  return filled(url, (name) => values[name] ?? "x");
}

/** Nothing that takes effect: whoever gets in is told what is missing in the body. */
async function ask(url: string, method: string, bearer: string | undefined): Promise<"in" | 401 | 403> {
  const hasBody = method !== "GET" && method !== "DELETE";
  const answer = await fetch(url, {
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
  await answer.body?.cancel();
  return answer.status === 401 || answer.status === 403 ? answer.status : "in";
}

const rulesOf = (routes: Running["routes"]) =>
  Object.fromEntries(
    routes.map(({ method, route }) => {
      const path = filled(route.url, (name) => `{${name}}`).replace(/\.[0-9a-f]{16}\./, ".{hash}.");
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
    alice: await all.makeUser("alice"),
    bob: await all.makeUser("bob"),
    admin: await all.makeUser("admin"),
    suspended: await all.makeUser("suspended"),
  };
  await all.db.query(
    `insert into gateway_bff.known_users (user_id, status, roles, account_version) values ($1, 'SUSPENDED', '{USER}', 2)
         on conflict (user_id) do update set status = 'SUSPENDED', account_version = 2`,
    [users.suspended.userId],
  );

  expect(Object.fromEntries(all.running.map(({ name, routes }) => [name, rulesOf(routes)]))).toEqual(rules);

  const wrong: unknown[] = [];
  let asked = 0;
  for (const { name, url, routes } of all.running)
    for (const caller of callersAt(name, users, all))
      for (const { method, route } of routes) {
        // A suspended player asks for what is their own: it is the suspension that refuses them.
        const { userId } = caller.suspended ? users.suspended : users.alice;
        const expected = expectedOf(caller, route, userId);
        const found = await ask(url + pathOf(route.url, userId), method, await caller.bearer());
        if (found !== expected) wrong.push([name, method, route.url, caller.name, { expected, found }]);
        asked++;
      }
  expect(wrong).toEqual([]);
  expect(asked).toBeGreaterThan(500);
}, 300_000);

/**
 * `grantEntitlement` is in commands/grant-entitlement.ts of its service, which exports a function of that name. The second path
 * of a command has the suffix V1.
 */
function isCommand(service: ServiceName, operationId: string): boolean {
  const name = operationId.replace(/V1$/, "");
  const file = `${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}.ts`;
  const path = new URL(`../services/${service}/commands/${file}`, import.meta.url);
  return (
    existsSync(path) && new RegExp(`^export (async )?(function|const) ${name}\\b`, "m").test(readFileSync(path, "utf8"))
  );
}

test("every route that changes something has a command of the same name", () => {
  const isChange = ({ method, route }: Running["routes"][number]) =>
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
