import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { testDatabase, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";

const program = fileURLToPath(new URL("./main.ts", import.meta.url));

/** Runs the program and collects its output. */
function run(databaseUrl: string): { child: ChildProcess; output: () => string; ended: Promise<unknown[]> } {
  const env = { ...process.env, DATABASE_URL: databaseUrl };
  const child = spawn(process.execPath, [program], { env, stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  const collect = (data: unknown) => {
    text += data;
  };
  for (const stream of [child.stdout, child.stderr]) stream.on("data", collect);
  return { child, output: () => text, ended: once(child, "close") };
}

test("every order is shipped once, also those of a killed run", async () => {
  await using t = await testDatabase({ sets: [] });
  const first = run(t.url);
  await first.ended;
  expect(first.output()).toBe("3 orders placed\n3 orders, 3 shipped, 3 shipments\n");

  const killed = run(t.url);
  await until("its orders are placed", () => killed.output().includes("placed"));
  killed.child.kill("SIGKILL");
  await killed.ended;

  const last = run(t.url);
  const [code] = await last.ended;
  expect([code, last.output()]).toEqual([0, "3 orders placed\n9 orders, 9 shipped, 9 shipments\n"]);
});

test("the guide shows this program", async () => {
  const guide = await readFile(new URL("../../docs/guides/use-the-kernel-alone.md", import.meta.url), "utf8");
  expect(guide).toContain(`\`\`\`ts\n${await readFile(program, "utf8")}\`\`\`\n`);
  const tables = await readFile(new URL("./migrations/0001_orders.sql", import.meta.url), "utf8");
  expect(guide).toContain(`\`\`\`sql\n${tables}\`\`\`\n`);
});
