import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { isAlive, killTree } from "./process-tree.ts";

/** Starts a grandchild that leads its own session, as a PostgreSQL backend does, and prints its pid. */
const parent = `
  const child = require("node:child_process").spawn("sleep", ["600"], { detached: true });
  console.log(child.pid);
`;

test("killing a tree also kills processes that lead their own session", async () => {
  const root = spawn(process.execPath, ["--eval", parent], { stdio: ["ignore", "pipe", "inherit"] });
  const [grandchild] = await once(createInterface({ input: root.stdout }), "line");
  expect(isAlive(Number(grandchild))).toBe(true);
  await killTree(root.pid ?? expect.fail("it did not start"));
  expect(isAlive(Number(grandchild))).toBe(false);
  expect(isAlive(Number(root.pid))).toBe(false);
});

test("killing a process that has exited is not an error", async () => {
  const brief = spawn("true");
  await once(brief, "exit");
  await killTree(Number(brief.pid));
  expect(isAlive(Number(brief.pid))).toBe(false);
});
