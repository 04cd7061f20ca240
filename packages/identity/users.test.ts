import { expect, test } from "vitest";
import { demoUsers } from "./demo-users.ts";
import { passwordCheck } from "./users.ts";

test("while as many wrong passwords as may wait are waiting, no other is looked at, not even the right one", async () => {
  const check = passwordCheck(demoUsers, 50);
  const guesses = Array.from({ length: 30 }, (_, n) => check("alice", `guess-${n}`));
  const right = check("alice", "alice-demo");
  expect(await right).toBe("busy");
  const answers = await Promise.all(guesses);
  expect(answers.filter((answer) => answer === "wrong")).toHaveLength(20);
  expect(answers.filter((answer) => answer === "busy")).toHaveLength(10);
  expect(await check("alice", "alice-demo")).toBe(demoUsers[0]);
});
