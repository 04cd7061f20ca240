import { decodeEvent, encodeEvent } from "@todoke/contracts";
import { fixedId, openFaultProxy, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { adminSubject, consistent, provider, setup } from "../testing.ts";

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const claims = { email: "aki@example.com", email_verified: true, display_name: "Aki", locale: "ja-JP" };

test("the first login creates a user, and the next returns the same bytes", async () => {
  await using t = await setup();
  const { resolve } = await t.process();
  const first = await resolve("aki", claims);
  expect([first.statusCode, first.json()]).toEqual([
    200,
    {
      user_id: expect.stringMatching(uuidV7),
      status: "ACTIVE",
      display_name: "Aki",
      locale: "ja-JP",
      email: "aki@example.com",
      roles: ["USER"],
      version: 1,
      created_at: expect.stringMatching(time),
      updated_at: first.json().created_at,
    },
  ]);
  const again = await resolve("aki", claims);
  expect([again.statusCode, again.rawPayload.toString("hex")]).toEqual([200, first.rawPayload.toString("hex")]);
  expect(await t.counts()).toMatchObject({ users: 1, identities: 1, roles: 1, audit: 1, events: 1, keys: 0 });
});

test("50 parallel first logins at two processes create one user and one event", async () => {
  await using t = await setup();
  const processes = [await t.process(), await t.process()];
  for (const subject of ["aki", adminSubject]) {
    const responses = await Promise.all(
      Array.from({ length: 50 }, (_, i) => processes[i % 2]?.resolve(subject, claims)),
    );
    const bytes = responses.map((response) => `${response?.statusCode} ${response?.rawPayload.toString("hex")}`);
    expect(new Set(bytes).size).toBe(1);
    expect(responses[0]?.statusCode).toBe(200);
  }
  expect(await t.counts()).toMatchObject({ users: 2, identities: 2, roles: 3, audit: 3, events: 3 });
  expect(await t.violations()).toEqual(consistent);
});

test("AccountCreated fits the contract", async () => {
  await using t = await setup();
  const { user_id } = (await (await t.process()).resolve("aki", claims)).json();
  const [row] = await t.rows(`select * from outbox_events`);
  expect(row).toMatchObject({ event_type: "AccountCreated", subject: "account.events", aggregate_key: user_id });
  const event = decodeEvent("AccountCreated", encodeEvent("AccountCreated", row.payload));
  expect(event).toMatchObject({ userId: user_id, version: 1n, eventId: row.event_id });
  expect(JSON.stringify(row.payload)).not.toMatch(/aki/i); // no personal data
});

test("another provider, or another subject with the same e-mail, is another user", async () => {
  await using t = await setup();
  const { resolve } = await t.process();
  const ids = [
    (await resolve("aki", claims)).json().user_id,
    (await resolve("aki", { ...claims, provider: "https://other.example" })).json().user_id,
    (await resolve("attacker", claims)).json().user_id,
  ];
  expect(new Set(ids).size).toBe(3);
  expect(
    await t.rows(`select provider, subject from identities group by 1, 2 having count(distinct user_id) > 1`),
  ).toEqual([]);
  await resolve("aki", { ...claims, email: "new@example.com" });
  expect(await t.rows(`select provider, subject from identities where email = 'new@example.com'`)).toEqual([
    { provider, subject: "aki" },
  ]);
});

test("changed claims are saved, and unchanged or missing ones write nothing", async () => {
  await using t = await setup();
  const { resolve } = await t.process();
  await resolve("aki", { email: "aki@example.com" });
  const updated = (await resolve("aki", { ...claims, email: "AKI@new.example" })).json();
  expect(updated).toMatchObject({ email: "AKI@new.example", display_name: "Aki", locale: "ja-JP", version: 2 });
  const before = await t.rows(`select u.xmin::text, i.xmin::text as of_identity from users u, identities i`);
  expect((await resolve("aki", { email: "AKI@new.example" })).json()).toEqual(updated);
  expect((await resolve("aki")).json()).toEqual(updated);
  expect(await t.rows(`select u.xmin::text, i.xmin::text as of_identity from users u, identities i`)).toEqual(before);
  // A name from the provider does not replace the user's own.
  expect((await resolve("aki", { display_name: "A. Suzuki" })).json()).toEqual(updated);
  expect(await t.rows(`select display_name from identities`)).toEqual([{ display_name: "A. Suzuki" }]);
  // A claim that is missing stays as it is.
  expect((await resolve("aki", { email_verified: false })).json()).toEqual(updated);
  expect(await t.rows(`select display_name, locale from identities`)).toEqual([
    { display_name: "A. Suzuki", locale: "ja-JP" },
  ]);
  expect(await t.rows(`select version::int, actor, action, before, after from audit_logs order by version`)).toEqual([
    {
      version: 1,
      actor: "service:gateway-bff",
      action: "CREATE",
      before: {},
      after: { status: "ACTIVE", roles: ["USER"] },
    },
    {
      version: 2,
      actor: "service:gateway-bff",
      action: "UPDATE",
      before: { email: "aki@example.com" },
      after: { email: "AKI@new.example", display_name: "Aki", locale: "ja-JP" },
    },
  ]);
});

test("a name that the user removed does not return with the next login", async () => {
  await using t = await setup();
  const { resolve, patch } = await t.process();
  const user = (await resolve("aki", claims)).json();
  await patch(user, user, { display_name: null });
  expect((await resolve("aki", claims)).json()).not.toHaveProperty("display_name");
});

test("parallel logins with changed claims at two processes save them once", async () => {
  await using t = await setup();
  const processes = [await t.process(), await t.process()];
  await processes[0]?.resolve("aki", claims);
  const changed = { ...claims, email: "new@example.com" };
  const responses = await Promise.all(Array.from({ length: 20 }, (_, i) => processes[i % 2]?.resolve("aki", changed)));
  expect(new Set(responses.map((response) => response?.body)).size).toBe(1);
  expect(responses[0]?.json()).toMatchObject({ email: "new@example.com", version: 2 });
  expect(await t.violations()).toEqual(consistent);
});

test("a login that waits for a user who is deleted and recreated does not change the new user", async () => {
  await using t = await setup();
  const { resolve } = await t.process();
  await resolve("aki", claims);
  const other = await t.db.connect();
  await other.query(`begin; select from users for update`);
  const login = resolve("aki", { ...claims, email: "new@example.com" });
  const waits = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  await until("the login waits", async () => (await t.rows(waits)).length === 1);
  await other.query(
    `insert into users (user_id) values ('${fixedId(1)}'); update identities set user_id = '${fixedId(1)}'`,
  );
  await other.query("commit");
  other.release();
  // The login has not locked this user.
  expect((await login).json()).toMatchObject({ user_id: fixedId(1), version: 1 });
});

test("claims that are invalid in a profile are stored with the identity only", async () => {
  await using t = await setup();
  const { resolve } = await t.process();
  const odd = (await resolve("odd", { display_name: "ika\u202ediova", locale: "klingon in latin" })).json();
  expect(odd).not.toHaveProperty("display_name");
  expect(odd).not.toHaveProperty("locale");
  expect((await resolve("us", { locale: "en_us" })).json()).toMatchObject({ locale: "en-US" });
  expect(await t.rows(`select display_name from identities where subject = 'odd'`)).toEqual([
    { display_name: "ika\u202ediova" },
  ]);
});

test("an identity of ACCOUNT_ADMINS becomes an admin at login, with event and audit", async () => {
  await using t = await setup();
  const { resolve } = await t.process();
  const admin = (await resolve(adminSubject)).json();
  expect(admin).toMatchObject({ roles: ["ADMIN", "USER"], version: 2 });
  expect((await resolve("aki")).json()).toMatchObject({ roles: ["USER"], version: 1 });
  expect((await resolve(adminSubject, { provider: "https://other.example" })).json().roles).toEqual(["USER"]);
  const [row] = await t.rows(`select payload from outbox_events where event_type = 'AccountRolesChanged'`);
  const event = decodeEvent("AccountRolesChanged", encodeEvent("AccountRolesChanged", row.payload));
  expect(event).toMatchObject({ userId: admin.user_id, roles: "ADMIN,USER", version: 2n });
  expect(await t.rows(`select actor, reason from audit_logs where action = 'GRANT_ROLE'`)).toEqual([
    { actor: "todoke:settings", reason: "named in ACCOUNT_ADMINS" },
  ]);
  expect(await t.violations()).toEqual(consistent);
});

test.each(["request", "answer"] as const)(
  "a lost %s of the first login's commit is 503, and a retry ends with one user",
  async (lost) => {
    await using t = await setup();
    await using wire = await openFaultProxy(t.url);
    const { resolve } = await t.process(t.open({ url: wire.url }));
    await resolve("warm-up");
    wire.cutNext("insert user", lost);
    const unknown = await resolve("aki");
    expect([unknown.statusCode, unknown.json().code]).toEqual([503, "outcome-unknown"]);
    expect((await resolve("aki")).json()).toMatchObject({ version: 1 });
    expect(await t.counts()).toMatchObject({ users: 2, identities: 2, events: 2 });
    expect(await t.violations()).toEqual(consistent);
  },
);

test("identities are looked up by provider and subject only, by an index", async () => {
  await using t = await setup();
  const [{ indexes }] = await t.rows(
    `select array_agg(indexdef) as indexes from pg_indexes where schemaname = 'account' and indexdef ilike '%email%'`,
  );
  expect(indexes).toHaveLength(1);
  expect(indexes[0]).not.toMatch(/unique/i);
  const plan = await t.rows(`explain select user_id from identities where provider = 'p' and subject = 's'`);
  expect(plan.map((row) => row["QUERY PLAN"]).join("\n")).toMatch(/Index.* using identity_names_one_user/);
});

test("bad input is a 4xx that names the field and writes nothing", async () => {
  await using t = await setup();
  const { call } = await t.process();
  const good = { provider, subject: "aki" };
  const cases: [unknown, string][] = [
    [{ provider }, "body.subject"],
    [{ ...good, subject: "" }, "body.subject"],
    [{ ...good, subject: 7 }, "body.subject"],
    [{ ...good, subject: "a\0b" }, "body.subject"],
    [{ ...good, subject: "x".repeat(256) }, "body.subject"],
    [`{"provider":"p","subject":"\\ud800"}`, "body.subject"],
    [`{"provider":"p","subject":"s","__proto__":{"roles":["ADMIN"]}}`, "body.__proto__"],
    [{ ...good, roles: ["ADMIN"] }, "body.roles"],
    [{ ...good, user_id: "mine" }, "body.user_id"],
    [{ ...good, email_verified: "true" }, "body.email_verified"],
    [{ ...good, email: null }, "body.email"],
  ];
  for (const [payload, field] of cases) {
    const response = await call("POST", "/identities:resolve", { as: "service:gateway-bff", payload });
    expect([payload, response.statusCode]).toEqual([payload, 400]);
    expect(response.json().errors.map((error: { field: string }) => error.field)).toContain(field);
  }
  expect(await t.counts()).toMatchObject({ users: 0, identities: 0, audit: 0, events: 0 });
});

test("display names are for the gateway only, up to 64 at once; users without one are left out", async () => {
  await using t = await setup();
  const { call, person } = await t.process();
  const [aki, ben] = [await person("aki", claims), await person("ben")];
  const names = (user_ids: string, as = "service:gateway-bff") =>
    call("GET", `/display-names?user_ids=${user_ids}`, { as });
  const found = await names([aki.user_id, ben.user_id, fixedId(9)].join());
  expect(found.json()).toEqual({ users: [{ user_id: aki.user_id, display_name: "Aki" }] });
  expect((await names(Array.from({ length: 65 }, (_, n) => fixedId(n)).join())).statusCode).toBe(400);
  expect((await call("GET", `/display-names?user_ids=${aki.user_id}`, { as: aki })).statusCode).toBe(403);
});
