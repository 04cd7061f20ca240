import { fixedId, openFaultProxy, repetitions } from "@todoke/kernel/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { adminSubject, consistent, setup } from "../testing.ts";

const claims = { email: "aki@example.com", display_name: "Aki" };

test("a user is read with the version as ETag, and an unknown user is 404", async () => {
  await using t = await setup();
  const { person, call } = await t.process();
  const [aki, admin] = [await person("aki", claims), await person(adminSubject)];
  const response = await call("GET", `/users/${aki.user_id}`, { as: aki });
  expect([response.statusCode, response.headers.etag, response.json()]).toEqual([200, '"1"', aki]);
  for (const unknown of [fixedId(1), "unknown", aki.user_id.toUpperCase()]) {
    const never = await call("GET", `/users/${unknown}`, { as: admin });
    expect([never.statusCode, never.json().code]).toEqual([404, "user-not-found"]);
  }
});

test("If-Match: a missing one is 428, another version 412, an invalid one 400", async () => {
  await using t = await setup();
  const { person, call, patch, read } = await t.process();
  const aki = await person("aki", claims);
  const without = await call("PATCH", `/users/${aki.user_id}`, { as: aki, payload: { locale: "ja" } });
  expect([without.statusCode, without.json().code]).toEqual([428, "if-match-missing"]);
  for (const header of ["*", "1", 'W/"1"', '"1", "2"', '"01"', '""', `"${"9".repeat(40)}"`]) {
    const headers = { "if-match": header };
    const response = await call("PATCH", `/users/${aki.user_id}`, { as: aki, headers, payload: { locale: "ja" } });
    expect([header, response.statusCode, response.json().errors[0].field]).toEqual([header, 400, "header.if-match"]);
  }
  const changed = await patch(aki, aki, { display_name: "秋", locale: "JA-jp" });
  expect([changed.statusCode, changed.headers.etag]).toEqual([200, '"2"']);
  expect(changed.json()).toMatchObject({ display_name: "秋", locale: "ja-JP", email: "aki@example.com", version: 2 });
  const late = await patch(aki, aki, { display_name: "Late" });
  expect([late.statusCode, late.json().code]).toEqual([412, "version-mismatch"]);
  const cleared = await patch(aki, changed.json(), { display_name: null });
  expect(cleared.json()).toMatchObject({ locale: "ja-JP", version: 3 });
  expect(cleared.json()).not.toHaveProperty("display_name");
  expect(await read(aki)).toEqual(cleared.json());
});

test("of 20 updates of one version at two processes, one succeeds", async () => {
  await using t = await setup();
  const processes = [await t.process(), await t.process()];
  const aki = await processes[0]?.person("aki", claims);
  if (!aki) throw new Error("no user");
  // Opens all connections first; else the first connection wins the race.
  await Promise.all(Array.from({ length: 16 }, (_, i) => processes[i % 2]?.read(aki)));
  const responses = await Promise.all(
    Array.from({ length: 20 }, (_, i) => processes[i % 2]?.patch(aki, aki, { display_name: `Aki ${i}` })),
  );
  const codes = responses.map((response) => response?.statusCode).sort();
  expect(codes).toEqual([200, ...Array.from({ length: 19 }, () => 412)]);
  const again = await processes[1]?.patch(aki, { ...aki, version: 2 }, { locale: "ja" });
  expect(again?.json().version).toBe(3);
  expect((await processes[0]?.patch(aki, { ...aki, version: 3 }, { locale: "ja" }))?.json().version).toBe(4);
  expect(await t.violations()).toEqual(consistent);
});

test("the audit of an admin's update has the admin and the values before and after", async () => {
  await using t = await setup();
  const { person, patch } = await t.process();
  const [aki, admin] = [await person("aki", claims), await person(adminSubject)];
  expect((await patch(admin, aki, { display_name: "Renamed" })).statusCode).toBe(200);
  const [row] = await t.rows(
    `select actor, action, before, after from audit_logs where version = 2 and action = 'UPDATE'`,
  );
  expect(row).toEqual({
    actor: `user:${admin.user_id}`,
    action: "UPDATE",
    before: { display_name: "Aki" },
    after: { display_name: "Renamed" },
  });
  expect(await t.violations()).toEqual(consistent);
});

test("fields that users cannot change, and deceptive names, are rejected by name", async () => {
  await using t = await setup();
  const { person, patch, read } = await t.process();
  const aki = await person("aki", claims);
  const before = await t.counts();
  const cases: [unknown, string][] = [
    [{}, "body"],
    [{ role: "ADMIN" }, "body.role"],
    [{ display_name: "A", roles: ["ADMIN"] }, "body.roles"],
    [{ display_name: "A", status: "ACTIVE" }, "body.status"],
    [{ display_name: "A", version: 9 }, "body.version"],
    [{ email: "a@b.example" }, "body.email"],
    [`{"display_name":"A","__proto__":{"roles":["ADMIN"]}}`, "body.__proto__"],
    [{ display_name: "" }, "body.display_name"],
    [{ display_name: " Aki" }, "body.display_name"],
    [{ display_name: "two\nlines" }, "body.display_name"],
    [{ display_name: "a\u202eb" }, "body.display_name"],
    [{ display_name: "x".repeat(101) }, "body.display_name"],
    [{ display_name: 7 }, "body.display_name"],
    [{ display_name: "a\0b" }, "body.display_name"],
    [`{"display_name":"\\ud800"}`, "body.display_name"],
    [{ locale: "klingon in latin" }, "body.locale"],
    [{ locale: "en_US" }, "body.locale"],
    [{ locale: "j" }, "body.locale"],
  ];
  for (const [payload, field] of cases) {
    const response = await patch(aki, aki, payload);
    expect([payload, response.statusCode]).toEqual([payload, 400]);
    expect(response.json().errors.map((error: { field: string }) => error.field)).toContain(field);
  }
  expect(await read(aki)).toEqual(aki);
  expect(await t.counts()).toEqual(before);
});

test("an accepted name is returned as it was sent", async () => {
  await using t = await setup();
  const { person, patch } = await t.process();
  let user = await person("aki");
  const name = fc
    .string({ unit: "grapheme", minLength: 1, maxLength: 30 })
    .filter(
      (text) => text.trim() === text && !/[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/u.test(text),
    );
  await fc.assert(
    fc.asyncProperty(name, async (display_name) => {
      const response = await patch(user, user, { display_name });
      expect([response.statusCode, response.json().display_name]).toEqual([200, display_name]);
      user = response.json();
    }),
    { numRuns: repetitions(50) },
  );
});

test("an export has all data of a user, with the audit in pages", async () => {
  await using t = await setup();
  const { person, patch, call, act } = await t.process();
  const [aki, admin] = [await person("aki", { ...claims, email_verified: true }), await person(adminSubject)];
  await patch(aki, aki, { locale: "ja" });
  await act(admin, `/admin/users/${aki.user_id}:suspend`, { reason: "cheating" });
  const response = await call("GET", `/users/${aki.user_id}/export?limit=2`, { as: admin });
  const { user, identities, roles, audit, next_cursor } = response.json();
  expect(user).toMatchObject({ user_id: aki.user_id, status: "SUSPENDED", email: "aki@example.com", version: 3 });
  expect(identities).toMatchObject([
    { provider: "https://id.example", subject: "aki", email_verified: true, ...claims },
  ]);
  expect(roles).toEqual([{ role: "USER", granted_at: aki.created_at }]);
  expect(audit).toMatchObject([
    { version: 3, action: "SUSPEND", reason: "cheating", actor: `user:${admin.user_id}` },
    { version: 2, action: "UPDATE", after: { locale: "ja" } },
  ]);
  const rest = await call("GET", `/users/${aki.user_id}/export?limit=2&cursor=${next_cursor}`, { as: admin });
  expect(rest.json().audit).toMatchObject([{ version: 1, action: "CREATE" }]);
  expect(rest.json()).not.toHaveProperty("next_cursor");
  expect((await call("GET", "/users/unknown/export", { as: admin })).statusCode).toBe(404);
});

test("a deletion erases all personal data, and the next login creates a new user", async () => {
  await using t = await setup();
  const { person, patch, act, call } = await t.process();
  const [aki, admin] = [await person("aki-subject", claims), await person(adminSubject)];
  await patch(aki, aki, { display_name: "Aki Suzuki", locale: "ja" });
  const gone = await act(aki, `/users/${aki.user_id}:delete`, { reason: "no longer needed" }, "key-1");
  expect([gone.statusCode, gone.json()]).toEqual([
    200,
    {
      user_id: aki.user_id,
      status: "DELETED",
      roles: [],
      version: 3,
      created_at: aki.created_at,
      updated_at: expect.any(String),
    },
  ]);
  const replayed = await act(aki, `/users/${aki.user_id}:delete`, { reason: "no longer needed" }, "key-1");
  expect([replayed.body, replayed.headers["idempotency-replayed"]]).toEqual([gone.body, "true"]);
  for (const table of ["users", "identities", "account_roles", "audit_logs", "outbox_events"]) {
    const rows = await t.rows(`select row_to_json(r)::text as text from ${table} r`);
    expect(rows.map(({ text }) => text).join()).not.toMatch(/aki|suzuki|"ja"/i);
  }
  const [row] = await t.rows(`select actor, reason, before, after from audit_logs where action = 'DELETE'`);
  expect(row).toEqual({
    actor: `user:${aki.user_id}`,
    reason: "no longer needed",
    before: { status: "ACTIVE", roles: ["USER"] },
    after: { status: "DELETED", roles: [] },
  });
  expect(await t.rows(`select version::int from outbox_events where event_type = 'AccountDeleted'`)).toEqual([
    { version: 3 },
  ]);
  const recreated = await person("aki-subject", claims);
  expect(recreated).toMatchObject({ version: 1, status: "ACTIVE" });
  expect(recreated.user_id).not.toBe(aki.user_id);
  expect((await call("GET", `/users/${aki.user_id}`, { as: admin })).json()).toEqual(gone.json());
  expect(await t.violations()).toEqual(consistent);
});

test("a deleted user cannot be changed and cannot act", async () => {
  await using t = await setup();
  const { person, act, patch } = await t.process();
  const [aki, admin] = [await person("aki", claims), await person(adminSubject)];
  await act(admin, `/users/${aki.user_id}:delete`, { reason: "requested" });
  const before = await t.counts();
  for (const action of ["suspend", "reinstate"]) {
    const response = await act(admin, `/admin/users/${aki.user_id}:${action}`, { reason: "why" });
    expect([response.statusCode, response.json().code]).toEqual([409, "user-deleted"]);
  }
  expect((await patch(admin, { ...aki, version: 2 }, { locale: "ja" })).json().code).toBe("user-deleted");
  expect((await patch(aki, { ...aki, version: 2 }, { locale: "ja" })).json().code).toBe("account-inactive");
  expect(await t.counts()).toEqual(before);
});

test("a login during a deletion returns the old user or a new one, and leaves no orphan", async () => {
  await using t = await setup();
  const [one, two] = [await t.process(), await t.process()];
  for (let round = 1; round <= 10; round++) {
    const aki = await one.person("aki", { email: `aki${round}@example.com` });
    const [, ...logins] = await Promise.all([
      one.act(aki, `/users/${aki.user_id}:delete`, { reason: "enough" }),
      ...[1, 2, 3].map((i) => two.resolve("aki", { email: `other${round}${i}@example.com` })),
    ]);
    for (const login of logins) expect([login.statusCode, login.json().status]).toEqual([200, "ACTIVE"]);
  }
  expect(await t.violations()).toEqual(consistent);
});

test.each(["request", "answer"] as const)(
  "a retry after a lost %s of the commit deletes the user once",
  async (lost) => {
    await using t = await setup();
    await using wire = await openFaultProxy(t.url);
    const { person, act } = await t.process(t.open({ url: wire.url }));
    const aki = await person("aki", claims);
    const remove = () => act(aki, `/users/${aki.user_id}:delete`, { reason: "enough" }, "key-1");
    wire.cutNext("commit", lost);
    const unknown = await remove();
    expect([unknown.statusCode, unknown.json().code]).toEqual([503, "outcome-unknown"]);
    const retried = await remove();
    expect([retried.statusCode, retried.json().version]).toEqual([200, 2]);
    expect(retried.headers["idempotency-replayed"]).toBe(lost === "answer" ? "true" : undefined);
    expect(await t.counts()).toEqual({ users: 1, identities: 0, roles: 0, audit: 2, events: 2, keys: 1 });
    expect(await t.violations()).toEqual(consistent);
  },
);
