import { repetitions } from "@todoke/kernel/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { adminSubject, provider, setup } from "../testing.ts";

async function search(t: Awaited<ReturnType<typeof setupSearch>>, query: string) {
  const response = await t.call("GET", `/admin/users?${query}`, { as: t.admin });
  expect([query, response.statusCode]).toEqual([query, 200]);
  return response.json().users.map((user: { user_id: string }) => user.user_id);
}

async function setupSearch() {
  const t = await setup();
  const process = await t.process();
  return { ...t, ...process, admin: await process.person(adminSubject) };
}

test("users are found by id, by e-mail in any case, and by identity; filters are combined", async () => {
  await using t = await setupSearch();
  const aki = await t.person("aki", { email: "Aki@Example.com" });
  const twin = await t.person("twin", { email: "aki@example.com" });
  const identity = `provider=${encodeURIComponent(provider)}&subject=aki`;
  expect(await search(t, `user_id=${aki.user_id}`)).toEqual([aki.user_id]);
  // Sorted by id: ids of one millisecond are in no particular order.
  const inOrder = (...users: { user_id: string }[]) => users.map(({ user_id }) => user_id).sort();
  expect(await search(t, "email=AKI%40example.com")).toEqual(inOrder(aki, twin));
  expect(await search(t, identity)).toEqual([aki.user_id]);
  expect(await search(t, `${identity}&email=aki%40example.com`)).toEqual([aki.user_id]);
  expect(await search(t, `${identity}&user_id=${twin.user_id}`)).toEqual([]);
  expect(await search(t, "email=aki%25")).toEqual([]); // exact, no pattern
  expect(await search(t, "")).toEqual(inOrder(t.admin, aki, twin));
  const [listed] = (await t.call("GET", `/admin/users?user_id=${aki.user_id}`, { as: t.admin })).json().users;
  expect(listed).toEqual(aki);
});

test("users are found by the beginning of their name, in any case, in the order of names, by an index", async () => {
  await using t = await setupSearch();
  const names = ["Akira", "aki", "AKI Tanaka", "akane", "Mei", "a%i", "Ａki"];
  const people = await Promise.all(names.map((display_name, n) => t.person(`p${n}`, { display_name })));
  const idOf = (name: string) => people[names.indexOf(name)]?.user_id;
  expect(await search(t, "name=AKI")).toEqual(["aki", "AKI Tanaka", "Akira"].map(idOf));
  expect(await search(t, "name=a%25i")).toEqual([idOf("a%i")]); // no pattern
  const first = (await t.call("GET", "/admin/users?name=aki&limit=2", { as: t.admin })).json();
  expect(await search(t, `name=aki&limit=2&cursor=${first.next_cursor}`)).toEqual([idOf("Akira")]);
  for (const query of ["name=ak", "name=aki&email=a%40b.c"])
    expect((await t.call("GET", `/admin/users?${query}`, { as: t.admin })).statusCode).toBe(400);
  const plan = await t.rows(
    `explain select user_id from users u where u.display_name is not null and (lower(u.display_name) collate "C") >= 'aki'
       and (lower(u.display_name) collate "C") < 'aki' || chr(1114111)
      order by (lower(u.display_name) collate "C"), u.user_id limit 100`,
  );
  expect(JSON.stringify(plan)).toMatch(/Index.*users_name/);
  expect(JSON.stringify(plan)).not.toContain("Sort");
});

test("pages of any size show every user once, in order", async () => {
  await using t = await setupSearch();
  for (let i = 0; i < 9; i++) await t.person(`user ${i}`);
  const all = await search(t, "");
  expect(all).toHaveLength(10);
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 12 }), async (limit) => {
      const seen: string[] = [];
      for (let cursor = ""; ; ) {
        const response = await t.call("GET", `/admin/users?limit=${limit}${cursor}`, { as: t.admin });
        const { users, next_cursor } = response.json();
        seen.push(...users.map((user: { user_id: string }) => user.user_id));
        if (next_cursor === undefined) break;
        cursor = `&cursor=${next_cursor}`;
      }
      expect(seen).toEqual(all);
    }),
    { numRuns: repetitions(12) },
  );
});

test("the audit is listed newest first, by user, by actor and in pages", async () => {
  await using t = await setupSearch();
  const [aki, bo] = [await t.person("aki"), await t.person("bo")];
  await t.act(t.admin, `/admin/users/${aki.user_id}:suspend`, { reason: "cheating" });
  await t.act(t.admin, `/admin/users/${bo.user_id}:grant-role`, { reason: "helps out", role: "ADMIN" });
  const list = async (query: string) => (await t.call("GET", `/admin/audit?${query}`, { as: t.admin })).json();
  const { audit, ...rest } = await list(`user_id=${aki.user_id}`);
  expect(rest).toEqual({});
  expect(audit).toEqual([
    {
      audit_id: expect.any(Number),
      user_id: aki.user_id,
      version: 2,
      actor: `user:${t.admin.user_id}`,
      action: "SUSPEND",
      reason: "cheating",
      before: { status: "ACTIVE" },
      after: { status: "SUSPENDED", suspended_reason: "cheating" },
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    },
    expect.objectContaining({ version: 1, action: "CREATE", actor: "service:gateway-bff" }),
  ]);
  const byAdmin = await list(`actor=user:${t.admin.user_id}&limit=1`);
  expect(byAdmin.audit).toMatchObject([{ action: "GRANT_ROLE", user_id: bo.user_id }]);
  const next = await list(`actor=user:${t.admin.user_id}&limit=1&cursor=${byAdmin.next_cursor}`);
  expect(next).toMatchObject({ audit: [{ action: "SUSPEND", user_id: aki.user_id }] });
  expect(next).not.toHaveProperty("next_cursor");
  expect((await list("")).audit).toHaveLength(6);
});

test("searches of users and audit are index scans", async () => {
  await using t = await setup();
  const texts = [
    `select user_id from users u where user_id > '' and lower(email) = lower('A') order by user_id limit 9`,
    `select user_id from users u where user_id > '' and user_id = (select i.user_id from identities i where i.provider = 'p' and i.subject = 's') order by user_id limit 9`,
    `select audit_id from audit_logs where audit_id < 9 and user_id = 'u' order by audit_id desc limit 9`,
    `select audit_id from audit_logs where audit_id < 9 and actor = 'a' order by audit_id desc limit 9`,
    `select audit_id from audit_logs where audit_id < 9 order by audit_id desc limit 9`,
  ];
  for (const text of texts) {
    const plan = (await t.rows(`explain ${text}`)).map((row) => row["QUERY PLAN"]).join("\n");
    expect(plan).toMatch(/Index/);
    expect(plan).not.toMatch(/Sort {2}|Seq Scan/);
  }
});

test("half an identity, an invalid cursor and an unknown filter are rejected by name", async () => {
  await using t = await setupSearch();
  const cases = [
    ["/admin/users?provider=p", "query.subject"],
    ["/admin/users?subject=s", "query.provider"],
    ["/admin/users?cursor=%21", "query.cursor"],
    [`/admin/users?cursor=${Buffer.from("not an id").toString("base64url")}`, "query.cursor"],
    [`/admin/users?cursor=${Buffer.from("-".repeat(36)).toString("base64url")}`, "query.cursor"],
    ["/admin/users?email=", "query.email"],
    ["/admin/users?email=a%00b", "query.email"],
    ["/admin/users?email=a&email=b", "query.email"],
    ["/admin/users?limit=1001", "query.limit"],
    ["/admin/users?role=ADMIN", "query.role"],
    ["/admin/audit?cursor=AA", "query.cursor"],
    [`/admin/audit?cursor=${Buffer.from("-1").toString("base64url")}`, "query.cursor"],
    ["/admin/audit?action=SUSPEND", "query.action"],
  ] as const;
  for (const [url, field] of cases) {
    const response = await t.call("GET", url, { as: t.admin });
    expect([url, response.statusCode]).toEqual([url, 400]);
    expect(response.json().errors.map((error: { field: string }) => error.field)).toContain(field);
  }
});
