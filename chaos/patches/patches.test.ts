import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { expect, test } from "vitest";
import { invariants } from "../invariants.ts";
import { failpoints, patchesFor, planted, type Wanted } from "./index.ts";
import { patched } from "./patch.ts";

const root = new URL("../../", import.meta.url);

/** Loads every patched file; throws if a patch does not apply or leaves invalid TypeScript. */
function load(wanted: Wanted): string[] {
  const patches = patchesFor(wanted);
  return [...new Set(patches.map(({ file }) => file))].map((file) => {
    const source = readFileSync(new URL(file, root), "utf8");
    return stripTypeScriptTypes(patched(file, source, patches));
  });
}

test.each(failpoints.map(({ name }, index) => [name, index] as const))("failpoint %s can be applied", (name, index) => {
  const failpoint = failpoints[index] as (typeof failpoints)[number];
  const sources = load({ failpoints: [failpoint] });
  if (name !== "planted.gap") expect(sources.length).toBeGreaterThan(0);
});

test.each(planted.map(({ name }, index) => [name, index] as const))(
  "defect %s can be applied, also with all failpoints",
  (_, index) => {
    const defects = planted.slice(index, index + 1);
    expect(load({ planted: defects }).length).toBeGreaterThan(0);
    load({ planted: defects, failpoints });
  },
);

test("work by claims only can be patched in, also with all failpoints", () => {
  expect(load({ claimsOnly: true }).length).toBeGreaterThan(0);
  load({ claimsOnly: true, failpoints });
});

test("names are unique, and every defect names existing invariants", () => {
  for (const all of [failpoints, planted]) {
    const names = all.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  }
  for (const { caughtBy } of planted) {
    expect(caughtBy.length).toBeGreaterThan(0);
    for (const name of caughtBy) expect(Object.keys(invariants)).toContain(name);
  }
});

test("docs/chaos.md lists exactly the failpoints and defects", () => {
  const page = readFileSync(new URL("docs/chaos.md", root), "utf8");
  const rows = page.split("\n").flatMap((line) => /^\| (`[^|]*`) \|/.exec(line)?.[1]?.match(/[^`, ]+/g) ?? []);
  expect(rows.toSorted()).toEqual([...failpoints, ...planted].map(({ name }) => name).toSorted());
});

test("a patch that does not match exactly once is an error", () => {
  const patch = { file: "a.ts", find: "b();", replace: "c();" };
  expect(patched("a.ts", "a(); b();", [patch])).toBe("a(); c();");
  expect(patched("other.ts", "x();", [patch])).toBe("x();");
  expect(() => patched("a.ts", "x();", [patch])).toThrow('a.ts has 0 places that read "b();"');
  expect(() => patched("a.ts", "b(); b();", [patch])).toThrow("2 places");
});
