import { expect, test, vi } from "vitest";
import { createMemoryAdapter } from "./memory-adapter.ts";

test("an entry is found until it expires, a session by id and uid", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const memory = createMemoryAdapter();
  const [sessions, codes] = [memory("Session"), memory("AuthorizationCode")];
  await sessions.upsert("s1", { uid: "u1", accountId: "alice" }, 60);
  await codes.upsert("s1", { accountId: "bob" }, 30);
  expect(await sessions.findByUid("u1")).toBe(await sessions.find("s1"));
  vi.advanceTimersByTime(30_000);
  expect(await codes.find("s1")).toBeUndefined();
  expect(await sessions.find("s1")).toMatchObject({ accountId: "alice" });
  await sessions.destroy("s1");
  expect([await sessions.find("s1"), await sessions.findByUid("u1")]).toEqual([undefined, undefined]);
  vi.useRealTimers();
});

test("revoking a grant deletes only the tokens of the given kind", async () => {
  const memory = createMemoryAdapter();
  const [access, refresh] = [memory("AccessToken"), memory("RefreshToken")];
  await access.upsert("a1", { grantId: "g1" }, 60);
  await access.upsert("a2", { grantId: "g2" }, 60);
  await refresh.upsert("r1", { grantId: "g1" }, 60);
  await access.revokeByGrantId("g1");
  expect(await access.find("a1")).toBeUndefined();
  expect(await access.find("a2")).toBeDefined();
  expect(await refresh.find("r1")).toBeDefined();
});

test("the adapter drops its oldest entries when it is full", async () => {
  const tokens = createMemoryAdapter()("AccessToken");
  for (let n = 0; n < 10_001; n++) await tokens.upsert(`t${n}`, {}, 60);
  expect(await tokens.find("t0")).toBeUndefined();
  expect(await tokens.find("t1")).toBeDefined();
  expect(await tokens.find("t10000")).toBeDefined();
});
