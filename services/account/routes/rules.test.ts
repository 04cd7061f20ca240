/** Access rules: every route of the service, by every kind of caller. */
import { expect, test } from "vitest";
import { adminSubject, type Call, setup } from "../testing.ts";

const callers = ["anonymous", "own", "other", "admin", "gateway", "another service", "key"] as const;
type Caller = (typeof callers)[number];

const ownOrAdmin: readonly Caller[] = ["own", "admin"];
const admins: readonly Caller[] = ["admin"];

/** Paths, with {id} for the user "own", and the callers that are allowed. */
const routes: readonly (readonly [method: "GET" | "POST" | "PATCH", path: string, who: readonly Caller[]])[] = [
  ["POST", "/identities:resolve", ["gateway"]],
  ["GET", "/display-names?user_ids={id}", ["gateway"]],
  ["GET", "/shared-reads/users?user_ids={id}", ["gateway"]],
  ["GET", "/users/{id}", ownOrAdmin],
  ["PATCH", "/users/{id}", ownOrAdmin],
  ["GET", "/users/{id}/export", ownOrAdmin],
  ["POST", "/users/{id}:delete", ownOrAdmin],
  ["GET", "/admin/users", admins],
  ["GET", "/admin/audit", admins],
  ["POST", "/admin/users/{id}:suspend", admins],
  ["POST", "/admin/users/{id}:reinstate", admins],
  ["POST", "/admin/users/{id}:grant-role", admins],
  ["POST", "/admin/users/{id}:revoke-role", admins],
];

test("every route rejects callers that its rule does not name before it reads the body", async () => {
  await using t = await setup();
  const { app, call, person } = await t.process();
  const [aki, bo, admin] = [await person("aki"), await person("bo"), await person(adminSubject)];
  const as: Record<Caller, Call> = {
    anonymous: {},
    own: { as: aki },
    other: { as: bo },
    admin: { as: admin },
    gateway: { as: "service:gateway-bff" },
    "another service": { as: "service:points" },
    key: { as: "key:shop" as never },
  };
  const before = await t.counts();
  for (const [method, path, who] of routes)
    for (const caller of callers) {
      const payload = method === "GET" ? {} : { payload: { nonsense: true } };
      const headers = { "x-user-id": admin.user_id, "x-user-roles": "ADMIN" }; // ignored
      const { statusCode } = await call(method, path.replace("{id}", aki.user_id), {
        ...as[caller],
        ...payload,
        headers,
      });
      const isAllowed = who.includes(caller);
      const expected = isAllowed ? (method === "GET" ? 200 : 400) : caller === "anonymous" ? 401 : 403;
      expect([method, path, caller, statusCode]).toEqual([method, path, caller, expected]);
    }
  expect(await t.counts()).toEqual(before);

  // The list above is complete.
  const { paths } = (await app.inject({ url: "/openapi.json" })).json();
  const declared = Object.entries<object>(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path.replace("{user_id}", "{id}")}`),
  );
  expect(declared.sort()).toEqual(routes.map(([method, path]) => `${method} ${path.split("?")[0]}`).sort());
});
