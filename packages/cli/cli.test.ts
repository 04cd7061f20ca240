import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { openShell } from "./testing/command.ts";

test("help lists every command and service, by any of its names", async () => {
  await using shell = openShell();
  const asked = await Promise.all(["", "help", "--help", "-h"].map((args) => shell.run(args)));
  for (const { code, out, err } of asked) {
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain("Todoke 0.1.0: nothing lost, nothing doubled.\n\nUsage: todoke <command> [options]\n");
    for (const name of [
      "dev",
      "serve",
      "migrate",
      "keys",
      "dead",
      "audit",
      "orders",
      "match",
      "doctor",
      "version",
      "help",
    ])
      expect(out).toMatch(`\n  ${name} `);
    expect(out).toContain("  counter   8099   counts\n");
  }
});

test("every command says how it is used and what its options do, and fits a screen", async () => {
  await using shell = openShell();
  for (const name of ["dev", "serve", "migrate", "keys", "dead", "audit", "orders", "match", "doctor", "version"]) {
    const { code, out } = await shell.run(`help ${name}`);
    expect(code).toBe(0);
    expect(out).toMatch(new RegExp(`^Usage: todoke ${name}`));
    for (const line of out.split("\n")) expect(line.length, line).toBeLessThanOrEqual(120);
  }
  expect(await shell.run("migrate --help")).toEqual(await shell.run("help migrate"));
});

test("a command that does not exist is refused, with what was probably meant", async () => {
  await using shell = openShell();
  expect(await shell.run("doktor")).toEqual({
    code: 2,
    out: "",
    err: 'There is no command "doktor". Did you mean `todoke doctor`?\n`todoke help` lists them all.\n',
  });
  expect((await shell.run("help xyzzy")).err).toBe('There is no command "xyzzy".\n`todoke help` lists them all.\n');
});

test("an option or a word that does not exist is refused with the usage", async () => {
  await using shell = openShell();
  expect(await shell.run("doctor --jsn")).toEqual({
    code: 2,
    out: "",
    err: "✗ Unknown option '--jsn'\nUsage: todoke doctor [--json]\n",
  });
  const { code, err } = await shell.run("dev now");
  expect(code).toBe(2);
  expect(err).toContain("Unexpected argument 'now'");
});

test("version says its own and Node's", async () => {
  await using shell = openShell("todoke");
  const expected = { code: 0, out: `todoke 0.1.0 (Node ${process.versions.node})\n`, err: "" };
  expect(await shell.run("version")).toEqual(expected);
  expect(await shell.run("--version")).toEqual(expected);
});

test("there is colour where it is asked for, and none into a pipe or with NO_COLOR", async () => {
  await using shell = openShell();
  const colour = "\u001b[";
  expect((await shell.run("doctor")).out).not.toContain(colour);
  expect((await shell.run("doctor", { FORCE_COLOR: "1" })).out).toContain(colour);
  expect((await shell.run("doctor", { NO_COLOR: "1" })).out).not.toContain(colour);
});

test("an older Node is told where the right one is, instead of a syntax error", async () => {
  const bin = fileURLToPath(new URL("todoke.js", import.meta.url));
  const older = `data:text/javascript,Object.defineProperty(process, "versions", { value: { node: "20.20.2" } })`;
  const run = promisify(execFile)(process.execPath, ["--import", older, bin, "help"]);
  await expect(run).rejects.toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^todoke needs Node 26 or newer, and this is Node 20.20.2.\n.*`npx todoke …`/),
  });
  const { stdout } = await promisify(execFile)(process.execPath, [bin, "version"]);
  expect(stdout).toContain("todoke 0.1.0");
});
