import { expect, test, vi } from "vitest";
import { openMemory } from "./memory.ts";

test("what is kept is found until its time is over, a session by both of its names", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const memory = openMemory();
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

test("what a grant gave is taken back of one kind at a time", async () => {
  const memory = openMemory();
  const [access, refresh] = [memory("AccessToken"), memory("RefreshToken")];
  await access.upsert("a1", { grantId: "g1" }, 60);
  await access.upsert("a2", { grantId: "g2" }, 60);
  await refresh.upsert("r1", { grantId: "g1" }, 60);
  await access.revokeByGrantId("g1");
  expect(await access.find("a1")).toBeUndefined();
  expect(await access.find("a2")).toBeDefined();
  expect(await refresh.find("r1")).toBeDefined();
});

test("it holds so much and no more: the oldest make room", async () => {
  const tokens = openMemory()("AccessToken");
  for (let n = 0; n < 10_001; n++) await tokens.upsert(`t${n}`, {}, 60);
  expect(await tokens.find("t0")).toBeUndefined();
  expect(await tokens.find("t1")).toBeDefined();
  expect(await tokens.find("t10000")).toBeDefined();
});
