import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Three requests, one after the other, through code of production. */
const program = `
  const { createBatcher } = await import("@todoke/kernel/batcher");
  const submit = createBatcher({ run: async (requests) => requests });
  for (const request of ["one", "two", "three"]) console.log(await submit(request).catch((error) => error.message));`;

interface Run {
  readonly child: ChildProcess;
  readonly said: () => string;
  readonly complained: () => string;
  readonly ended: Promise<{ code: number | null; signal: string | null }>;
}

function run(env: Record<string, string>): Run {
  const child = spawn(
    process.execPath,
    ["--import", "./chaos/patches/instrument.ts", "--input-type=module", "--eval", program],
    { cwd: root, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] },
  );
  const heard = { stdout: "", stderr: "" };
  child.stdout.on("data", (text) => (heard.stdout += text));
  child.stderr.on("data", (text) => (heard.stderr += text));
  const ended = once(child, "close").then(([code, signal]) => ({ code, signal }));
  return { child, said: () => heard.stdout, complained: () => heard.stderr, ended };
}

/** As the system tells it: "T" is stopped, and stays so until it is continued. */
const stateOf = ({ pid }: ChildProcess) => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.[0];

const at = (order: object) => ({ CHAOS_FAILPOINTS: JSON.stringify([{ name: "batch.done", ...order }]) });

test("without orders nothing is changed", async () => {
  const { ended, said } = run({});
  expect(await ended).toEqual({ code: 0, signal: null });
  expect(said()).toBe("one\ntwo\nthree\n");
});

test("a process kills itself when it gets to the point for the n-th time, and tells of it", async () => {
  const { ended, said, complained } = run(at({ action: "kill", hit: 2 }));
  expect(await ended).toEqual({ code: null, signal: "SIGKILL" });
  expect(said()).toBe("one\n");
  expect(complained()).toBe("chaos: kill at batch.done, hit 2\n");
});

test("a process that stops itself goes on where it was when it is continued", async () => {
  const { child, ended, said, complained } = run(at({ action: "stop", hit: 2 }));
  await until("it tells that it stops", () => complained().includes("chaos: stop at batch.done"));
  await until("it has stopped, a moment later", () => stateOf(child) === "T");
  await until("all that it said before is heard", () => said() !== "");
  expect(said()).toBe("one\n");
  child.kill("SIGCONT");
  expect(await ended).toEqual({ code: 0, signal: null });
  expect(said()).toBe("one\ntwo\nthree\n");
});

test("an error and a delay end where the code deals with them", async () => {
  const orders = [
    { name: "batch.starting", action: "throw", hit: 2 },
    { name: "batch.split", action: "throw" },
    { name: "batch.done", action: "delay", hit: "every", ms: 1 },
  ];
  const { ended, said, complained } = run({ CHAOS_FAILPOINTS: JSON.stringify(orders) });
  expect(await ended).toEqual({ code: 0, signal: null });
  expect(said()).toBe("one\nchaos: told to fail at batch.split\nthree\n");
  expect(complained().split("\n").length).toBe(3); // Two errors are told of; a delay is not worth a line.
});

test.each([
  [{ CHAOS_FAILPOINTS: '[{"name":"relay.nowhere","action":"kill"}]' }, "relay.nowhere is not the name of a failpoint"],
  [{ CHAOS_FAILPOINTS: '[{"name":"relay.published","action":"explode"}]' }, "action is one of kill, stop, delay"],
  [{ CHAOS_FAILPOINTS: '[{"name":"relay.published","action":"kill","hit":0}]' }, "hit counts from 1"],
  [{ CHAOS_PLANTED: "no-such-bug" }, "no-such-bug is not the name of a planted defect"],
] as const)("%j is refused, and what there is is listed", async (env, complaint) => {
  const { ended, said, complained } = run(env);
  expect((await ended).code).toBe(1);
  expect(said()).toBe("");
  expect(complained()).toContain(complaint);
});
