import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import type { Rules } from "../rules/types.ts";
import { openLiveRules } from "./live-rules.ts";

const folderOf = () => {
  const folder = mkdtempSync(join(tmpdir(), "todoke-rules-"));
  return { at: (name: string) => join(folder, name), [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
};

const withModes = (...names: string[]) => `modes: { ${names.map((name) => `${name}: {}`).join(", ")} }\n`;

/** Rules with a short poll interval, and the reported changes and errors. */
async function open(path: string) {
  const changes: Rules[] = [];
  const errors: unknown[] = [];
  const rules = await openLiveRules({
    path,
    onChange: (changed) => changes.push(changed),
    onError: (error) => errors.push(error),
    intervalMs: 10,
  });
  const modes = () => [...rules.current().modes.keys()].join();
  return { rules, changes, errors, modes, [Symbol.asyncDispose]: () => rules[Symbol.asyncDispose]() };
}

test("without a file the built-in rules apply", async () => {
  await using rules = await openLiveRules({});
  expect([...rules.current().modes.keys()]).toEqual(["duel", "ranked", "squad"]);
});

test("an invalid or missing file throws at the start, with all errors", async () => {
  using folder = folderOf();
  writeFileSync(folder.at("rules.yaml"), "modes:\n  a: { teams: 1 }\n  b: { teem_size: 1 }\n");
  await expect(openLiveRules({ path: folder.at("rules.yaml") })).rejects.toMatchObject({
    faults: [
      "rules.yaml:2: modes.a.teams should be a whole number from 2 to 16, and is 1",
      "rules.yaml:3: modes.b.teem_size is not known here; did you mean team_size?",
    ],
  });
  await expect(openLiveRules({ path: folder.at("none.yaml") })).rejects.toThrow(/ENOENT.*none.yaml/);
});

test("a file that is overwritten, replaced, or behind a changed symbolic link takes effect", async () => {
  using folder = folderOf();
  const path = folder.at("rules.yaml");
  writeFileSync(path, withModes("a"));
  await using t = await open(path);
  writeFileSync(path, withModes("a", "b"));
  await until("the file written over is read", () => t.modes() === "a,b");
  writeFileSync(folder.at("rules.yaml~"), withModes("a", "c"));
  renameSync(folder.at("rules.yaml~"), path);
  await until("the replacement is read", () => t.modes() === "a,c");
  writeFileSync(folder.at("data"), withModes("d"));
  symlinkSync("data", folder.at("link"));
  renameSync(folder.at("link"), path);
  await until("what the link leads to is read", () => t.modes() === "d");
  expect(t.errors).toEqual([]);
  expect(t.changes.map(({ modes }) => [...modes.keys()].join())).toEqual(["a,b", "a,c", "d"]);
});

test("an invalid change is reported once, and the current rules stay until a valid one", async () => {
  using folder = folderOf();
  const path = folder.at("rules.yaml");
  writeFileSync(path, withModes("a"));
  await using t = await open(path);
  writeFileSync(folder.at("bad"), "modes: { a: { teams: 1 } }");
  renameSync(folder.at("bad"), path);
  await until("the error is reported", () => t.errors.length > 0);
  for (let look = 0; look < 5; look++) await t.rules.reload();
  rmSync(path);
  await until("the missing file is reported", () => t.errors.length > 1);
  for (let look = 0; look < 5; look++) await t.rules.reload();
  expect(t.modes()).toBe("a");
  expect(t.errors).toMatchObject([
    {
      message: "loading rules.yaml failed",
      cause: { faults: [expect.stringMatching(/^rules.yaml:1: modes.a.teams /)] },
    },
    { message: "loading rules.yaml failed", cause: { code: "ENOENT" } },
  ]);
  writeFileSync(folder.at("good"), withModes("e"));
  renameSync(folder.at("good"), path);
  await until("the good one holds", () => t.modes() === "e");
  expect(t.errors).toHaveLength(2);
});

test("a second change with the same error is reported again", async () => {
  using folder = folderOf();
  const path = folder.at("rules.yaml");
  writeFileSync(path, withModes("a"));
  await using t = await open(path);
  for (const [at, comment] of ["# once", "# and once more"].entries()) {
    writeFileSync(folder.at("bad"), `modes: { a: { teams: 1 } } ${comment}`);
    renameSync(folder.at("bad"), path);
    await until("the error is reported", () => t.errors.length === at + 1);
  }
});

test("a touched file with the same content is not a change", async () => {
  using folder = folderOf();
  const path = folder.at("rules.yaml");
  writeFileSync(path, withModes("a"));
  await using t = await open(path);
  writeFileSync(folder.at("same"), withModes("a"));
  renameSync(folder.at("same"), path);
  await t.rules.reload();
  // Of another size, because both may have the same modification time.
  writeFileSync(path, withModes("next"));
  await until("the next is read", () => t.modes() === "next");
  expect(t.changes).toHaveLength(1);
});
