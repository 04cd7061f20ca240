import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { installWithApt } from "./apt.ts";
import { temporaryFolder } from "./testing.ts";

afterEach(() => vi.unstubAllEnvs());

/** Stands in for Debian: writes down how it was called, and ends as told. */
async function fakeApt(folder: string, ending: string): Promise<void> {
  const script = `#!/bin/sh\necho "$DEBIAN_FRONTEND $*" >> ${folder}/calls\n${ending}\n`;
  await writeFile(join(folder, "apt-get"), script);
  await chmod(join(folder, "apt-get"), 0o755);
  vi.stubEnv("PATH", `${folder}:${process.env.PATH}`);
}

test("installing says what it does before it does it, and asks no questions", async () => {
  using tmp = await temporaryFolder();
  await fakeApt(tmp.path, "exit 0");
  const said: string[] = [];
  await installWithApt("nats-server", (line) => said.push(line));
  expect(said.join()).toContain("apt-get install --yes --no-install-recommends nats-server");
  const calls = (await readFile(join(tmp.path, "calls"), "utf8")).trim().split("\n");
  expect(calls).toHaveLength(2);
  expect(calls[0]).toMatch(/^noninteractive update$/);
  expect(calls[1]).toMatch(/^noninteractive install --yes --no-install-recommends nats-server$/);
});

test("two installations at once take turns, and one that finds apt busy comes again", async () => {
  using tmp = await temporaryFolder();
  // Busy at the first call only; and a call that finds another still at work says so in the list of calls.
  const takeTurns = [
    `mkdir ${tmp.path}/at-work || echo overlap >> ${tmp.path}/calls`,
    `[ -e ${tmp.path}/tried ] || { touch ${tmp.path}/tried; rmdir ${tmp.path}/at-work; echo 'E: Could not get lock'; exit 100; }`,
    `rmdir ${tmp.path}/at-work`,
  ];
  await fakeApt(tmp.path, takeTurns.join("\n"));
  await Promise.all(["nats-server", "redis-server"].map((name) => installWithApt(name, () => {})));
  const calls = (await readFile(join(tmp.path, "calls"), "utf8")).trim().split("\n");
  const order = calls.map((call) => call.split(" ").at(-1));
  expect(order).toEqual(["update", "update", "nats-server", "update", "redis-server"]);
});

test("an installation that fails ends with apt's own words", async () => {
  using tmp = await temporaryFolder();
  await fakeApt(tmp.path, "echo 'E: Unable to locate package' >&2; exit 100");
  await expect(installWithApt("nats-server", () => {})).rejects.toThrow("E: Unable to locate package");
});
