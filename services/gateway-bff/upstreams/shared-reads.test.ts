import { Problem } from "@todoke/kernel/problem";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import type { Call } from "./client.ts";
import { type SharedCall, shareReads } from "./shared-reads.ts";
import { longMs } from "./testing.ts";

const readOf = (userId: string): SharedCall => ({
  method: "GET",
  path: `/users/${userId}`,
  user: { userId, roles: ["USER"] },
  sharedAs: "users",
  timeoutMs: longMs,
});

const refusal = (status: number) => new Problem({ code: "no", status, title: "No" }, "not like this");
const unreadable = () => refusal(502);

/** A service whose calls the test ends, and the reads that share them. */
function setup({ holdMs = longMs } = {}) {
  const calls: { readonly call: Call; succeed(value: unknown): void; fail(error: Error): void }[] = [];
  const call = (one: Call) => {
    const { promise, resolve, reject } = Promise.withResolvers<ReturnType<typeof responseWith>>();
    calls.push({ call: one, succeed: (value) => resolve(responseWith(value)), fail: reject });
    return promise;
  };
  const read = shareReads({ call, unreadable, holdMs });
  /** A first read that is in flight, and then reads of users who wait for it. */
  async function waitBehind(first: string, ...userIds: string[]) {
    const reads = [read(readOf(first))];
    await until("the first call", () => calls.length === 1);
    return [...reads, ...userIds.map((userId) => read(readOf(userId)))];
  }
  const paths = () => calls.map(({ call }) => call.path);
  return { read, calls, paths, waitBehind };
}

const responseWith = (value: unknown) => ({ status: 200, body: JSON.stringify(value), value, replayed: false });
const resultOf = (userId: string, etag?: string) => ({ status: 200, body: `{"user_id":"${userId}"}`, etag });
const readValue = async (read: Promise<{ readonly value: unknown }> | undefined) => (await read)?.value;

test("a read that finds none in flight goes alone as its user, and those that come meanwhile share a call of the gateway", async () => {
  const t = setup();
  const reads = await t.waitBehind("a", "b", "c");
  expect(t.calls[0]?.call).toMatchObject({ path: "/users/a", user: { userId: "a" } });
  t.calls[0]?.succeed({ user_id: "a" });
  await until("the shared call", () => t.calls.length === 2);
  expect(t.calls[1]?.call).toMatchObject({ method: "GET", path: "/shared-reads/users?user_ids=b,c" });
  expect(t.calls[1]?.call.user).toBe(undefined);
  t.calls[1]?.succeed({ results: [resultOf("b", '"2"'), { status: 204, body: "" }] });
  expect(await readValue(reads[0])).toEqual({ user_id: "a" });
  expect(await reads[1]).toEqual({
    status: 200,
    body: '{"user_id":"b"}',
    value: { user_id: "b" },
    etag: '"2"',
    replayed: false,
  });
  expect(await reads[2]).toEqual({ status: 204, body: "", value: undefined, replayed: false });
});

test("a call has at most 64 users", async () => {
  const t = setup();
  const users = Array.from({ length: 70 }, (_, n) => `u${n}`);
  const reads = await t.waitBehind("a", ...users);
  t.calls[0]?.succeed({});
  await until("both shared calls", () => t.calls.length === 3);
  t.calls[1]?.succeed({ results: users.slice(0, 64).map((user) => resultOf(user)) });
  expect(t.calls[2]?.call.path).toBe(`/shared-reads/users?user_ids=${users.slice(64).join()}`);
  t.calls[2]?.succeed({ results: users.slice(64).map((user) => resultOf(user)) });
  expect(await Promise.all(reads.slice(1).map(readValue))).toEqual(users.map((user_id) => ({ user_id })));
});

test("a user without a shared result is read alone, and gets the service's own refusal", async () => {
  const t = setup();
  const reads = await t.waitBehind("a", "b", "c");
  t.calls[0]?.succeed({});
  await until("the shared call", () => t.calls.length === 2);
  t.calls[1]?.succeed({ results: [null, resultOf("c")] });
  expect(await readValue(reads[2])).toEqual({ user_id: "c" });
  await until("the read of b", () => t.calls.length === 3);
  expect(t.calls[2]?.call).toMatchObject({ path: "/users/b", user: { userId: "b" } });
  t.calls[2]?.fail(refusal(404));
  await expect(reads[1]).rejects.toMatchObject({ status: 404 });
});

test("behind a service without shared reads every user is read alone, and sharing is not tried again at once", async () => {
  const t = setup();
  const reads = await t.waitBehind("a", "b", "c");
  t.calls[0]?.succeed({});
  await until("the shared call", () => t.calls.length === 2);
  t.calls[1]?.fail(refusal(404));
  await until("both reads", () => t.calls.length === 4);
  const later = [t.read(readOf("d")), t.read(readOf("e"))];
  expect(t.paths().slice(2)).toEqual(["/users/b", "/users/c", "/users/d", "/users/e"]);
  for (const { call, succeed } of t.calls.slice(2)) succeed({ user_id: call.user?.userId });
  const values = await Promise.all([...reads.slice(1), ...later].map(readValue));
  expect(values).toEqual(["b", "c", "d", "e"].map((user_id) => ({ user_id })));
});

test.each([
  ["fails", (call: ReturnType<typeof setup>["calls"][number]) => call.fail(refusal(503)), 503],
  ["has too few results", (call: ReturnType<typeof setup>["calls"][number]) => call.succeed({ results: [] }), 502],
  [
    "has a body that is no JSON",
    (call: ReturnType<typeof setup>["calls"][number]) => call.succeed({ results: [{ status: 200, body: "{" }, null] }),
    502,
  ],
])("if a shared call %s, each of its reads gets the failure and none is repeated", async (_, end, status) => {
  const t = setup();
  const reads = await t.waitBehind("a", "b", "c");
  t.calls[0]?.succeed({});
  await until("the shared call", () => t.calls.length === 2);
  end(t.calls[1] as ReturnType<typeof setup>["calls"][number]);
  for (const read of reads.slice(1)) await expect(read).rejects.toMatchObject({ status });
  expect(t.calls).toHaveLength(2);
});

test("a call that hangs holds no other back", async () => {
  const t = setup({ holdMs: 1 });
  const reads = await t.waitBehind("a", "b");
  await until("the read of b", () => t.calls.length === 2);
  t.calls[1]?.succeed({ user_id: "b" });
  expect(await readValue(reads[1])).toEqual({ user_id: "b" });
  t.calls[0]?.fail(refusal(504));
  await expect(reads[0]).rejects.toMatchObject({ status: 504 });
});

test("a shared call ends when the first of its reads has to", async () => {
  const t = setup();
  const reads = await t.waitBehind("a", "b");
  const soon = t.read({ ...readOf("c"), timeoutMs: 1_000 });
  t.calls[0]?.succeed({});
  await until("the shared call", () => t.calls.length === 2);
  expect(t.calls[1]?.call.timeoutMs).toBeLessThanOrEqual(1_000);
  t.calls[1]?.succeed({ results: [resultOf("b"), resultOf("c")] });
  expect(await Promise.all([readValue(reads[1]), readValue(soon)])).toEqual([{ user_id: "b" }, { user_id: "c" }]);
});
