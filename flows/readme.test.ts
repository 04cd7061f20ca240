/** The blocks of "Running it" in the README, run as they are, with the addresses of private engines in place of the examples. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startEngine } from "@todoke/engines";
import { freePort, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

/** The code blocks of a section. */
function blocksOf(section: string): string[] {
  const [, text = ""] = readFileSync(`${root}/README.md`, "utf8").split(`\n## ${section}\n`);
  return [...text.matchAll(/^```\n(.*?)^```$/gms)].map(([, block = ""]) => block);
}

/** A block runs several commands before its services start. */
const startedWithin = { withinMs: 240_000 };

/** Runs the lines in bash, and ends at the first that fails. The last one serves until it is stopped. */
function runBlock(script: string, env: Record<string, string>) {
  const { PATH, HOME } = process.env;
  const child = spawn("bash", ["-e", "-c", script], { cwd: root, detached: true, env: { PATH, HOME, ...env } });
  const output = { text: "" };
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output.text += text;
    });
  const ended = once(child, "close");
  return {
    output,
    async untilServing(urls: readonly string[]) {
      await until(
        "all services are ready, or the block has ended",
        async () => {
          if (child.exitCode !== null) throw new Error(`The block has ended:\n${output.text}`);
          const answers = urls.map((url) => fetch(`${url}/readyz`).then(({ ok }) => ok));
          return (await Promise.allSettled(answers)).every((answer) => answer.status === "fulfilled" && answer.value);
        },
        startedWithin,
      );
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.pid) process.kill(-child.pid, "SIGTERM");
      await ended;
    },
  };
}

test("the blocks of the README run on a fresh PostgreSQL and NATS, from the first line to a notification that is SENT", async () => {
  // A server of its own: `doctor` would report that the shared one has fsync off.
  await using database = await startEngine("postgres");
  await using nats = await startEngine("nats");
  const names = ["gateway-bff", "account", "entitlement", "notification", "matchmaking", "points", "orders"];
  const ports = new Map<string, number>();
  for (const name of names) ports.set(name, await freePort());
  const env: Record<string, string> = {};
  for (const [name, port] of ports) env[`${name.toUpperCase().replaceAll("-", "_")}_PORT`] = String(port);
  const urlOf = (name: string, offset = 0) => `http://127.0.0.1:${(ports.get(name) ?? 0) + offset}`;
  const withAddresses = (block: string) =>
    names.reduce(
      (text, name, index) => text.replaceAll(`http://127.0.0.1:${8080 + index}`, urlOf(name)),
      block.replace("postgres://todoke@db.example/todoke", database.url).replace("nats://bus.example:4222", nats.url),
    );
  const [first = "", second = ""] = blocksOf("Running it").map(withAddresses);
  expect([first, second].join()).not.toMatch(/db\.example|bus\.example|127\.0\.0\.1:80/);

  async function grant(key: string, purchase: string): Promise<number> {
    const [request = ""] = blocksOf("A first request");
    const [, body = ""] = /-d '(.*)'/.exec(request) ?? [];
    const headers = { authorization: `Bearer ${key}`, "idempotency-key": purchase, "content-type": "application/json" };
    const answer = await fetch(`${urlOf("entitlement")}/v1/entitlements/grants`, { method: "POST", headers, body });
    return answer.status;
  }
  const inbox = async () => (await fetch(`${urlOf("notification", 1_000)}/debug/notification/inbox/u_123`)).text();

  let key = "";
  {
    await using shell = runBlock(first, env);
    await shell.untilServing(["entitlement", "notification", "orders", "points"].map((name) => urlOf(name)));
    key = /^tdk_[\w-]{43}$/m.exec(shell.output.text)?.[0] ?? "";
    expect(shell.output.text).toContain("\n0 faults, ");
    expect(await grant(key, "p_456")).toBe(201);
    await until("the user is notified", async () => (await inbox()).includes('"status":"SENT"'));
  }
  // A shell keeps what was exported before.
  const exported = first.split("\n").filter((line) => line.startsWith("export "));
  await using shell = runBlock([...exported, second].join("\n"), env);
  await shell.untilServing(names.filter((name) => name !== "orders").map((name) => urlOf(name)));
  expect(await grant(key, "p_456")).toBe(201);
  expect((await fetch(`${urlOf("gateway-bff")}/v1/me`, { headers: { host: "play.example.com" } })).status).toBe(401);
});
