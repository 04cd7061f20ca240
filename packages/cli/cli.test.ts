import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { openShell } from "./testing/command.ts";

test("help, --help, -h and no arguments list every command and service", async () => {
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
      "why",
      "config",
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

test("the help of every command has its usage and options and fits a screen", async () => {
  await using shell = openShell();
  for (const name of [
    "dev",
    "serve",
    "migrate",
    "keys",
    "why",
    "dead",
    "audit",
    "orders",
    "match",
    "doctor",
    "version",
  ]) {
    const { code, out } = await shell.run(`help ${name}`);
    expect(code).toBe(0);
    expect(out).toMatch(new RegExp(`^Usage: todoke ${name}`));
    for (const line of out.split("\n")) expect(line.length, line).toBeLessThanOrEqual(120);
  }
  expect(await shell.run("migrate --help")).toEqual(await shell.run("help migrate"));
  expect((await shell.run("help keys")).out).toMatch(/^Usage: .*\n\n {2}create {4}\S/);
});

test("an unknown command is rejected with a suggestion", async () => {
  await using shell = openShell();
  expect(await shell.run("doktor")).toEqual({
    code: 2,
    out: "",
    err: 'There is no command "doktor". Did you mean "doctor"?\n`todoke help` lists all commands.\n',
  });
  expect((await shell.run("help xyzzy")).err).toBe('There is no command "xyzzy".\n`todoke help` lists all commands.\n');
});

test("an unknown option or argument is rejected with the usage", async () => {
  await using shell = openShell();
  expect(await shell.run("doctor --jsn")).toEqual({
    code: 2,
    out: "",
    err: "✗ Unknown option '--jsn'\nUsage: todoke doctor [service…] [--json]\n",
  });
  const { code, err } = await shell.run("dev now");
  expect(code).toBe(2);
  expect(err).toContain("Unexpected argument 'now'");
});

test("version prints the versions of todoke and Node", async () => {
  await using shell = openShell("todoke");
  const expected = { code: 0, out: `todoke 0.1.0 (Node ${process.versions.node})\n`, err: "" };
  expect(await shell.run("version")).toEqual(expected);
  expect(await shell.run("--version")).toEqual(expected);
});

test("output is coloured if forced, and not in a pipe or with NO_COLOR", async () => {
  await using shell = openShell();
  const colour = "\u001b[";
  expect((await shell.run("doctor")).out).not.toContain(colour);
  expect((await shell.run("doctor", { FORCE_COLOR: "1" })).out).toContain(colour);
  expect((await shell.run("doctor", { NO_COLOR: "1" })).out).not.toContain(colour);
});

test("an older Node hands over to the installed one, or says what is missing", async () => {
  const bin = fileURLToPath(new URL("todoke.js", import.meta.url));
  const pretend = (versions: object, platform = process.platform) =>
    `data:text/javascript,Object.defineProperties(process, ${JSON.stringify({
      versions: { value: versions },
      platform: { value: platform },
    })})`;
  const older = (platform?: NodeJS.Platform) =>
    promisify(execFile)(process.execPath, ["--import", pretend({ node: "20.20.2" }, platform), bin, "version"]);
  expect((await older()).stdout).toBe(`todoke 0.1.0 (Node ${process.versions.node})\n`);
  await expect(older("haiku")).rejects.toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^todoke needs Node 26 or newer, and this is Node 20.20.2.\n.*--omit=optional/),
  });
});
