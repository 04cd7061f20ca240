import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { installWithApt } from "./apt.ts";
import { temporaryFolder } from "./testing.ts";

afterEach(() => vi.unstubAllEnvs());

/** A fake apt-get that records its arguments and then runs `ending`. */
async function fakeApt(folder: string, ending: string): Promise<void> {
  const script = `#!/bin/sh\necho "$DEBIAN_FRONTEND $*" >> ${folder}/calls\n${ending}\n`;
  await writeFile(join(folder, "apt-get"), script);
  await chmod(join(folder, "apt-get"), 0o755);
  vi.stubEnv("PATH", `${folder}:${process.env.PATH}`);
}

test("an installation logs its command first and is not interactive", async () => {
  using tmp = await temporaryFolder();
  await fakeApt(tmp.path, "exit 0");
  const logged: string[] = [];
  await installWithApt("nats-server", (line) => logged.push(line));
  expect(logged.join()).toContain("apt-get install --yes --no-install-recommends nats-server");
  const calls = (await readFile(join(tmp.path, "calls"), "utf8")).trim().split("\n");
  expect(calls).toHaveLength(2);
  expect(calls[0]).toMatch(/^noninteractive update$/);
  expect(calls[1]).toMatch(/^noninteractive install --yes --no-install-recommends nats-server$/);
});

test("concurrent installations run one after the other and are retried while apt is locked", async () => {
  using tmp = await temporaryFolder();
  // Locked at the first call only. A call that overlaps with another adds "overlap" to the list of calls.
  const detectOverlap = [
    `mkdir ${tmp.path}/running || echo overlap >> ${tmp.path}/calls`,
    `[ -e ${tmp.path}/called ] || { touch ${tmp.path}/called; rmdir ${tmp.path}/running; echo 'E: Could not get lock'; exit 100; }`,
    `rmdir ${tmp.path}/running`,
  ];
  await fakeApt(tmp.path, detectOverlap.join("\n"));
  await Promise.all(["nats-server", "redis-server"].map((name) => installWithApt(name, () => {})));
  const calls = (await readFile(join(tmp.path, "calls"), "utf8")).trim().split("\n");
  const order = calls.map((call) => call.split(" ").at(-1));
  expect(order).toEqual(["update", "update", "nats-server", "update", "redis-server"]);
});

test("a failed installation rejects with the error of apt", async () => {
  using tmp = await temporaryFolder();
  await fakeApt(tmp.path, "echo 'E: Unable to locate package' >&2; exit 100");
  await expect(installWithApt("nats-server", () => {})).rejects.toThrow("E: Unable to locate package");
});
