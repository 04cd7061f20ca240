import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { isAlive, killTree } from "./process-tree.ts";

/** Forks a grandchild that leads a session of its own, as a PostgreSQL backend does, and prints its pid. */
const parent = `
  const child = require("node:child_process").spawn("sleep", ["600"], { detached: true });
  console.log(child.pid);
`;

test("killing a tree kills those who lead a session of their own, too", async () => {
  const root = spawn(process.execPath, ["--eval", parent], { stdio: ["ignore", "pipe", "inherit"] });
  const [grandchild] = await once(createInterface({ input: root.stdout }), "line");
  expect(isAlive(Number(grandchild))).toBe(true);
  await killTree(root.pid ?? expect.fail("it did not start"));
  expect(isAlive(Number(grandchild))).toBe(false);
  expect(isAlive(Number(root.pid))).toBe(false);
});

test("killing what is already gone is no error", async () => {
  const brief = spawn("true");
  await once(brief, "exit");
  await killTree(Number(brief.pid));
  expect(isAlive(Number(brief.pid))).toBe(false);
});
