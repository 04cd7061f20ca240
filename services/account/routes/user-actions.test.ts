import { decodeEvent, encodeEvent } from "@todoke/contracts";
import { openFaultProxy } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { adminSubject, consistent, setup } from "../testing.ts";

async function setupUsers() {
  const t = await setup();
  const process = await t.process();
  const [aki, admin] = [await process.person("aki"), await process.person(adminSubject)];
  const on = (action: string) => `/admin/users/${aki.user_id}:${action}`;
  return { ...t, ...process, process: t.process, aki, admin, on };
}

const later = "2999-12-31T23:59:59.5+09:00";

test("suspending again replaces reason and end, and a reinstatement ends the suspension", async () => {
  await using t = await setupUsers();
  const first = await t.act(t.admin, t.on("suspend"), { reason: "cheating", until: later });
  expect([first.statusCode, first.json()]).toMatchObject([
    200,
    { status: "SUSPENDED", suspended_reason: "cheating", suspended_until: "2999-12-31T14:59:59.500000Z", version: 2 },
  ]);
  const again = (await t.act(t.admin, t.on("suspend"), { reason: "worse" })).json();
  expect(again).toMatchObject({ status: "SUSPENDED", suspended_reason: "worse", version: 3 });
  expect(again).not.toHaveProperty("suspended_until");
  const resolved = (await t.resolve("aki")).json();
  expect(resolved).toEqual(again); // the gateway sees it at login
  const back = (await t.act(t.admin, t.on("reinstate"), { reason: "a mistake" })).json();
  expect(back).toEqual({ ...t.aki, version: 4, updated_at: expect.any(String) });
  expect(await t.violations()).toEqual(consistent);
});

test("every action emits an event that fits the contract, in the order of the versions", async () => {
  await using t = await setupUsers();
  await t.act(t.admin, t.on("suspend"), { reason: "cheating", until: later });
  await t.act(t.admin, t.on("suspend"), { reason: "worse" });
  await t.act(t.admin, t.on("reinstate"), { reason: "a mistake" });
  await t.act(t.admin, t.on("grant-role"), { reason: "helps out", role: "ADMIN" });
  await t.act(t.admin, t.on("revoke-role"), { reason: "enough", role: "ADMIN" });
  const rows = await t.rows(
    `select * from outbox_events where aggregate_key = '${t.aki.user_id}' and version > 1 order by position`,
  );
  const emitted = rows.map(({ event_type, event_id, payload }) => {
    const event = decodeEvent(event_type, encodeEvent(event_type, payload));
    expect(event).toMatchObject({ eventId: event_id, userId: t.aki.user_id });
    return { event_type, ...event };
  });
  expect(emitted).toMatchObject([
    { event_type: "AccountSuspended", version: 2n, reason: "cheating", suspendedUntil: { nanos: 500_000_000 } },
    { event_type: "AccountSuspended", version: 3n, reason: "worse" },
    { event_type: "AccountReinstated", version: 4n, reason: "a mistake" },
    { event_type: "AccountRolesChanged", version: 5n, roles: "ADMIN,USER" },
    { event_type: "AccountRolesChanged", version: 6n, roles: "USER" },
  ]);
  expect(await t.rows(`select action, before, after from audit_logs where version in (3, 5) order by version`)).toEqual(
    [
      {
        action: "SUSPEND",
        before: { suspended_reason: "cheating", suspended_until: "2999-12-31T14:59:59.500000Z" },
        after: { suspended_reason: "worse" },
      },
      { action: "GRANT_ROLE", before: { roles: ["USER"] }, after: { roles: ["ADMIN", "USER"] } },
    ],
  );
});

test("an action without effect stores its response and changes nothing", async () => {
  await using t = await setupUsers();
  const before = await t.counts();
  expect((await t.act(t.admin, t.on("reinstate"), { reason: "why not" })).json()).toEqual(t.aki);
  expect((await t.act(t.admin, t.on("revoke-role"), { reason: "why not", role: "ADMIN" })).json()).toEqual(t.aki);
  const self = `/admin/users/${t.admin.user_id}:grant-role`;
  expect((await t.act(t.admin, self, { reason: "why not", role: "ADMIN" })).json()).toEqual(t.admin);
  expect(await t.counts()).toEqual({ ...before, keys: 3 });
});

test("32 parallel requests with one key at two processes: one action, identical responses", async () => {
  await using t = await setupUsers();
  const processes = [await t.process(), await t.process()];
  const responses = await Promise.all(
    Array.from({ length: 32 }, (_, i) =>
      processes[i % 2]?.act(t.admin, t.on("suspend"), { reason: "cheating" }, "one"),
    ),
  );
  expect(new Set(responses.map((response) => `${response?.statusCode} ${response?.body}`)).size).toBe(1);
  expect(responses[0]?.json()).toMatchObject({ status: "SUSPENDED", version: 2 });
  expect(await t.counts()).toMatchObject({ audit: 4, events: 4, keys: 1 });
});

test("a key is unique per admin, action, user and body", async () => {
  await using t = await setupUsers();
  const bo = await t.person("bo");
  const act = (url: string, reason = "cheating") => t.act(t.admin, url, { reason }, "key-1");
  expect((await act(t.on("suspend"))).statusCode).toBe(200);
  const conflicts = [await act(t.on("suspend"), "another"), await act(`/admin/users/${bo.user_id}:suspend`)];
  for (const response of conflicts)
    expect([response.statusCode, response.json().code]).toEqual([409, "idempotency-conflict"]);
  expect((await act(t.on("reinstate"))).json()).toMatchObject({ status: "ACTIVE", version: 3 });
  await t.act(t.admin, `/admin/users/${bo.user_id}:grant-role`, { reason: "helps out", role: "ADMIN" });
  const admin2 = await t.read(bo);
  const other = await t.act(admin2, t.on("suspend"), { reason: "cheating" }, "key-1");
  expect([other.json().version, other.headers["idempotency-replayed"]]).toEqual([4, undefined]);
});

test.each(["request", "answer"] as const)(
  "a lost %s of the commit leaves state, audit and event consistent, and a retry applies once",
  async (lost) => {
    await using t = await setupUsers();
    await using wire = await openFaultProxy(t.url);
    const { act } = await t.process(t.open({ url: wire.url }));
    const suspend = () => act(t.admin, t.on("suspend"), { reason: "cheating" }, "key-1");
    wire.cutNext("commit", lost);
    const unknown = await suspend();
    expect([unknown.statusCode, unknown.json().code, unknown.headers["retry-after"]]).toEqual([
      503,
      "outcome-unknown",
      "1",
    ]);
    expect(await t.violations()).toEqual(consistent);
    expect((await t.read(t.aki)).version).toBe(lost === "answer" ? 2 : 1);
    const retried = await suspend();
    expect(retried.json()).toMatchObject({ status: "SUSPENDED", version: 2 });
    expect(retried.headers["idempotency-replayed"]).toBe(lost === "answer" ? "true" : undefined);
    expect(await t.violations()).toEqual(consistent);
    expect(await t.counts()).toMatchObject({ audit: 4, events: 4, keys: 1 });
  },
);

test("an end in the past, or one that cannot be stored, is rejected", async () => {
  await using t = await setupUsers();
  const suspend = (until: unknown) => t.act(t.admin, t.on("suspend"), { reason: "cheating", until });
  const past = await suspend("2020-01-01T00:00:00Z");
  expect([past.statusCode, past.json().code]).toEqual([422, "suspension-end-in-the-past"]);
  for (const until of ["tomorrow", "2999-02-30T00:00:00Z", "9999-12-31T23:59:59Z", "2999-12-31", 7, null, ""]) {
    const response = await suspend(until);
    expect([until, response.statusCode, response.json().errors[0].field]).toEqual([until, 400, "body.until"]);
  }
  expect((await t.read(t.aki)).version).toBe(1);
  expect((await t.counts()).keys).toBe(0);
});

test("admins cannot suspend themselves, and the last admin cannot give up role or account", async () => {
  await using t = await setupUsers();
  const self = (act: string) => `/admin/users/${t.admin.user_id}:${act}`;
  const stepDown = (as = t.admin) => t.act(as, self("revoke-role"), { reason: "tired", role: "ADMIN" });
  const own = await t.act(t.admin, self("suspend"), { reason: "me" });
  expect([own.statusCode, own.json().code]).toEqual([409, "own-suspension"]);
  const leave = () => t.act(t.admin, `/users/${t.admin.user_id}:delete`, { reason: "tired" });
  for (const response of [await stepDown(), await leave()])
    expect([response.statusCode, response.json().code]).toEqual([409, "last-admin"]);
  // A suspended admin does not count.
  await t.act(t.admin, t.on("grant-role"), { reason: "helps out", role: "ADMIN" });
  await t.act(t.admin, t.on("suspend"), { reason: "cheating" });
  expect((await stepDown()).json().code).toBe("last-admin");
  await t.act(t.admin, t.on("reinstate"), { reason: "a mistake" });
  expect((await stepDown()).json().roles).toEqual(["USER"]);
});

test("an admin whose suspension has expired counts as active before the expiry worker runs", async () => {
  await using t = await setupUsers();
  await t.act(t.admin, t.on("grant-role"), { reason: "helps out", role: "ADMIN" });
  await t.act(t.admin, t.on("suspend"), { reason: "cheating", until: later });
  await t.rows(`update users set suspended_until = now() where user_id = '${t.aki.user_id}'`);
  const self = `/admin/users/${t.admin.user_id}:revoke-role`;
  expect((await t.act(t.admin, self, { reason: "tired", role: "ADMIN" })).json().roles).toEqual(["USER"]);
});

test("when two admins act on each other, or both step down, one remains", async () => {
  await using t = await setupUsers();
  const [one, two] = [await t.process(), await t.process()];
  const admins = () =>
    t.rows(`select user_id from account_roles join users using (user_id) where role = 'ADMIN' and status = 'ACTIVE'`);
  const body = { reason: "no more", role: "ADMIN" };
  const rounds = [
    ["revoke-role", "other"],
    ["suspend", "other"],
    ["revoke-role", "self"],
  ] as const;
  for (const [action, target] of rounds) {
    const [a, b] = [await one.person(adminSubject), await one.person()];
    const made = await one.act(a, `/admin/users/${b.user_id}:grant-role`, body);
    expect(made.statusCode).toBe(200);
    const on = ({ user_id }: { user_id: string }) => `/admin/users/${user_id}:${action}`;
    const payload = action === "suspend" ? { reason: "no more" } : body;
    const [left, right] = target === "self" ? [a, b] : [b, a];
    const responses = await Promise.all([
      one.act({ ...a, roles: ["ADMIN"] }, on(left), payload),
      two.act({ ...b, roles: ["ADMIN"] }, on(right), payload),
    ]);
    expect(responses.map((response) => response.statusCode).filter((code) => code === 200)).toHaveLength(1);
    const [survivor] = await admins();
    expect(await admins()).toHaveLength(1);
    // The remaining admin restores the first one for the next round.
    if (survivor.user_id !== a.user_id) {
      const by = { user_id: survivor.user_id, roles: ["ADMIN"] as const };
      await one.act(by, `/admin/users/${a.user_id}:reinstate`, { reason: "next round" });
      await one.person(adminSubject);
      await one.act(by, `/admin/users/${survivor.user_id}:revoke-role`, body);
    }
  }
  expect(await t.violations()).toEqual(consistent);
});

test("a suspended user, or one without the role, is rejected despite an older token", async () => {
  await using t = await setupUsers();
  await t.act(t.admin, t.on("grant-role"), { reason: "helps out", role: "ADMIN" });
  const bo = await t.person("bo");
  const old = { user_id: t.aki.user_id, roles: ["ADMIN", "USER"] as const };
  const attempt = () => t.act(old, `/admin/users/${bo.user_id}:suspend`, { reason: "revenge" });
  await t.act(t.admin, t.on("suspend"), { reason: "cheating" });
  expect([(await attempt()).statusCode, (await attempt()).json().code]).toEqual([403, "account-inactive"]);
  const own = await t.patch(old, { ...t.aki, version: 3 }, { display_name: "Still here" });
  expect([own.statusCode, own.json().code]).toEqual([403, "account-inactive"]);
  await t.act(t.admin, t.on("reinstate"), { reason: "a mistake" });
  await t.act(t.admin, t.on("revoke-role"), { reason: "enough", role: "ADMIN" });
  expect([(await attempt()).statusCode, (await attempt()).json().code]).toEqual([403, "forbidden"]);
  expect(await t.read(bo)).toEqual(bo);
});

test("operators suspend and reinstate players, and no one on the staff; a viewer acts on nobody", async () => {
  await using t = await setupUsers();
  const grant = (user: { user_id: string }, role: string) =>
    t.act(t.admin, `/admin/users/${user.user_id}:grant-role`, { reason: "helps out", role });
  const [olive, vera] = [await t.person("olive"), await t.person("vera")];
  await grant(olive, "OPERATOR");
  expect((await grant(vera, "VIEWER")).json().roles).toEqual(["USER", "VIEWER"]);
  const operator = await t.read(olive);
  const suspend = (as: typeof operator, user: { user_id: string }) =>
    t.act(as, `/admin/users/${user.user_id}:suspend`, { reason: "cheating" });
  expect((await suspend(operator, t.aki)).json().status).toBe("SUSPENDED");
  expect((await t.act(operator, t.on("reinstate"), { reason: "a mistake" })).json().status).toBe("ACTIVE");
  for (const user of [vera, t.admin, operator]) expect((await suspend(operator, user)).statusCode).toBe(403);
  expect((await suspend(await t.read(vera), t.aki)).statusCode).toBe(403);
  // The database knows that the role is gone; the token does not.
  await t.act(t.admin, `/admin/users/${olive.user_id}:revoke-role`, { reason: "enough", role: "OPERATOR" });
  expect((await suspend(operator, t.aki)).json().code).toBe("forbidden");
  expect(await t.violations()).toEqual(consistent);
});

test("a former admin gets no replay of a response about another user", async () => {
  await using t = await setupUsers();
  const bo = await t.person("bo");
  await t.act(t.admin, `/admin/users/${bo.user_id}:grant-role`, { reason: "helps out", role: "ADMIN" });
  const admin2 = await t.read(bo);
  const suspend = () => t.act(admin2, t.on("suspend"), { reason: "cheating" }, "key-1");
  expect((await suspend()).statusCode).toBe(200);
  expect((await suspend()).headers["idempotency-replayed"]).toBe("true");
  await t.act(t.admin, `/admin/users/${bo.user_id}:revoke-role`, { reason: "enough", role: "ADMIN" });
  const again = await suspend();
  expect([again.statusCode, again.json().code]).toEqual([403, "forbidden"]);
});

test("a deletion erases personal fields from the audit of this user, on either side of a change", async () => {
  await using t = await setupUsers();
  expect((await t.patch(t.admin, t.admin, { locale: "en-US" })).statusCode).toBe(200);
  const added = (await t.patch(t.aki, t.aki, { locale: "ja-JP" })).json();
  expect((await t.patch(t.aki, added, { locale: null })).statusCode).toBe(200);
  const personal = () => t.rows(`select user_id from audit_logs where before ? 'locale' or after ? 'locale'`);
  expect(await personal()).toHaveLength(3);
  expect((await t.act(t.aki, `/users/${t.aki.user_id}:delete`, { reason: "enough" })).statusCode).toBe(200);
  expect(await personal()).toEqual([{ user_id: t.admin.user_id }]);
});

test("bad input is a 4xx that names the field and writes nothing", async () => {
  await using t = await setupUsers();
  const before = await t.counts();
  const cases: [string, unknown, string][] = [
    [t.on("suspend"), {}, "body.reason"],
    [t.on("suspend"), { reason: "" }, "body.reason"],
    [t.on("suspend"), { reason: "x".repeat(501) }, "body.reason"],
    [t.on("suspend"), { reason: "a\0b" }, "body.reason"],
    [t.on("suspend"), `{"reason":"\\ud800"}`, "body.reason"],
    [t.on("suspend"), { reason: "r", status: "DELETED" }, "body.status"],
    [t.on("reinstate"), `{"reason":"r","__proto__":{}}`, "body.__proto__"],
    [t.on("grant-role"), { reason: "r" }, "body.role"],
    [t.on("grant-role"), { reason: "r", role: "USER" }, "body.role"],
    [t.on("revoke-role"), { reason: "r", role: ["ADMIN"] }, "body.role"],
    ["/admin/users/a%00b:suspend", { reason: "r" }, "path.user_id"],
    [`/admin/users/${"x".repeat(200)}:suspend`, { reason: "r" }, "path.user_id"],
  ];
  const headers = { "idempotency-key": "key-1" };
  for (const [url, payload, field] of cases) {
    const response = await t.call("POST", url, { as: t.admin, headers, payload });
    expect([url, payload, response.statusCode]).toEqual([url, payload, 400]);
    expect(response.json().errors.map((error: { field: string }) => error.field)).toContain(field);
  }
  const keyless = await t.call("POST", t.on("suspend"), { as: t.admin, payload: { reason: "r" } });
  expect([keyless.statusCode, keyless.json().code]).toEqual([400, "idempotency-key-missing"]);
  for (const [url, code] of [
    ["/admin/users/unknown:suspend", "user-not-found"],
    [t.on("promote"), "not-found"],
    [`/admin/users/${t.aki.user_id}`, "not-found"],
  ] as const) {
    const response = await t.act(t.admin, url, { reason: "r" });
    expect([url, response.statusCode, response.json().code]).toEqual([url, 404, code]);
  }
  expect(await t.counts()).toEqual(before);
});
