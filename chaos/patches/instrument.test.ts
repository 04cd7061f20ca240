import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Sends three requests, one after the other, through the batcher. */
const program = `
  const { createBatcher } = await import("@todoke/kernel/batcher");
  const submit = createBatcher({ run: async (requests) => requests });
  for (const request of ["one", "two", "three"]) console.log(await submit(request).catch((error) => error.message));`;

interface Run {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly errors: () => string;
  readonly ended: Promise<{ code: number | null; signal: string | null }>;
}

function run(env: Record<string, string>): Run {
  const child = spawn(
    process.execPath,
    ["--import", "./chaos/patches/instrument.ts", "--input-type=module", "--eval", program],
    { cwd: root, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] },
  );
  const printed = { stdout: "", stderr: "" };
  child.stdout.on("data", (text) => (printed.stdout += text));
  child.stderr.on("data", (text) => (printed.stderr += text));
  const ended = once(child, "close").then(([code, signal]) => ({ code, signal }));
  return { child, output: () => printed.stdout, errors: () => printed.stderr, ended };
}

/** Process state in /proc: "T" is stopped. */
const processState = ({ pid }: ChildProcess) => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.[0];

const at = (order: object) => ({ CHAOS_FAILPOINTS: JSON.stringify([{ name: "batch.done", ...order }]) });

test("without failpoints nothing changes", async () => {
  const { ended, output } = run({});
  expect(await ended).toEqual({ code: 0, signal: null });
  expect(output()).toBe("one\ntwo\nthree\n");
});

test("a process kills itself at the n-th hit of a failpoint and reports it", async () => {
  const { ended, output, errors } = run(at({ action: "kill", hit: 2 }));
  expect(await ended).toEqual({ code: null, signal: "SIGKILL" });
  expect(output()).toBe("one\n");
  expect(errors()).toBe("chaos: kill at batch.done, hit 2\n");
});

test("a process that stops at a failpoint resumes on SIGCONT", async () => {
  const { child, ended, output, errors } = run(at({ action: "stop", hit: 2 }));
  await until("it reports the stop", () => errors().includes("chaos: stop at batch.done"));
  await until("it has stopped", () => processState(child) === "T");
  await until("its output has arrived", () => output() !== "");
  expect(output()).toBe("one\n");
  child.kill("SIGCONT");
  expect(await ended).toEqual({ code: 0, signal: null });
  expect(output()).toBe("one\ntwo\nthree\n");
});

test("the code handles an injected error and a delay", async () => {
  const orders = [
    { name: "batch.starting", action: "throw", hit: 2 },
    { name: "batch.split", action: "throw" },
    { name: "batch.done", action: "delay", hit: "every", ms: 1 },
  ];
  const { ended, output, errors } = run({ CHAOS_FAILPOINTS: JSON.stringify(orders) });
  expect(await ended).toEqual({ code: 0, signal: null });
  expect(output()).toBe("one\nchaos: injected error at batch.split\nthree\n");
  expect(errors().split("\n").length).toBe(3); // Two errors are reported; a delay is not.
});

test.each([
  [{ CHAOS_FAILPOINTS: '[{"name":"relay.nowhere","action":"kill"}]' }, "relay.nowhere is not the name of a failpoint"],
  [{ CHAOS_FAILPOINTS: '[{"name":"relay.published","action":"explode"}]' }, "action is one of kill, stop, delay"],
  [{ CHAOS_FAILPOINTS: '[{"name":"relay.published","action":"kill","hit":0}]' }, "hit counts from 1"],
  [{ CHAOS_PLANTED: "no-such-bug" }, "no-such-bug is not the name of a planted defect"],
] as const)("%j is rejected with a list of the known values", async (env, message) => {
  const { ended, output, errors } = run(env);
  expect((await ended).code).toBe(1);
  expect(output()).toBe("");
  expect(errors()).toContain(message);
});
