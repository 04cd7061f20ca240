import { expect, test } from "vitest";
import { demoUsers } from "./demo-users.ts";
import { createPasswordCheck } from "./users.ts";

test("no password is checked while the maximum number of wrong ones is delayed", async () => {
  const check = createPasswordCheck(demoUsers, 50);
  const guesses = Array.from({ length: 30 }, (_, n) => check("alice", `guess-${n}`));
  const right = check("alice", "alice-demo");
  expect(await right).toBe("busy");
  const results = await Promise.all(guesses);
  expect(results.filter((result) => result === "wrong")).toHaveLength(20);
  expect(results.filter((result) => result === "busy")).toHaveLength(10);
  expect(await check("alice", "alice-demo")).toBe(demoUsers[0]);
});
