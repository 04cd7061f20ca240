import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { testDatabase, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";

const program = fileURLToPath(new URL("./main.ts", import.meta.url));

/** Runs the program as its reader would, and hears what it says. */
function run(databaseUrl: string): { child: ChildProcess; said: () => string; ended: Promise<unknown[]> } {
  const env = { ...process.env, DATABASE_URL: databaseUrl };
  const child = spawn(process.execPath, [program], { env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  const hear = (text: unknown) => {
    output += text;
  };
  for (const stream of [child.stdout, child.stderr]) stream.on("data", hear);
  return { child, said: () => output, ended: once(child, "close") };
}

test("every order that was placed is shipped once, also those of a run that was killed", async () => {
  await using t = await testDatabase({ sets: [] });
  const whole = run(t.url);
  await whole.ended;
  expect(whole.said()).toBe("3 orders placed\n3 orders, 3 shipped, 3 shipments\n");

  const killed = run(t.url);
  await until("its orders are placed", () => killed.said().includes("placed"));
  killed.child.kill("SIGKILL");
  await killed.ended;

  const last = run(t.url);
  const [code] = await last.ended;
  expect([code, last.said()]).toEqual([0, "3 orders placed\n9 orders, 9 shipped, 9 shipments\n"]);
});

test("the guide shows the program that runs here, to the letter", async () => {
  const guide = await readFile(new URL("../../docs/guides/use-the-kernel-alone.md", import.meta.url), "utf8");
  expect(guide).toContain(`\`\`\`ts\n${await readFile(program, "utf8")}\`\`\`\n`);
  const tables = await readFile(new URL("./migrations/0001_orders.sql", import.meta.url), "utf8");
  expect(guide).toContain(`\`\`\`sql\n${tables}\`\`\`\n`);
});
