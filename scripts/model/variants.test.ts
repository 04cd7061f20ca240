import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../test/command.ts";
import { listVariants, models, readModel, resultOf } from "./variants.ts";

const page = readFileSync(join(root, "docs/model/README.md"), "utf8");

test("every line that the page of the model names is in the model, and its statement in the code", () => {
  const rows = [...page.matchAll(/^\| `(.+?)` \| \[[^\]]+\]\((.+?)\) \| `(.+?)` \|$/gm)];
  expect(rows.length).toBeGreaterThan(15);
  const withoutEscapes = (cell = "") => cell.replaceAll("\\|", "|");
  const texts = models.map(readModel);
  for (const [, line, file = "", code] of rows) {
    expect([line, texts.some((text) => text.includes(withoutEscapes(line)))]).toEqual([line, true]);
    const source = readFileSync(join(root, "docs/model", file), "utf8");
    expect([code, source.includes(withoutEscapes(code))]).toEqual([code, true]);
  }
});

test("every assertion of a model has the name of a property that the page explains", () => {
  for (const model of models)
    for (const line of readModel(model)
      .split("\n")
      .filter((each) => each.includes("assert("))) {
      const [, property] = /\/\* ([a-z ]+): /.exec(line) ?? [];
      expect([line, page.includes(`| ${property} |`)]).toEqual([line, true]);
    }
});

test("the page has a result for every variant, and every bug was found", () => {
  for (const { model, defines, isBug } of models.flatMap(listVariants)) {
    const name = defines.join(" ") || "as it is";
    const [, result] =
      new RegExp(`^\\| ${model} \\| ${name} \\| [\\d,]+ \\| [\\d.]+ \\| (.*) \\|$`, "m").exec(page) ?? [];
    expect([name, result]).toEqual([name, isBug ? expect.stringMatching(/^"[a-z ]+" is violated$/) : "no error"]);
  }
});

test("a bug that is not found, an error in the sound model, and a search that was cut short are failures", () => {
  const bug = { model: "inbox", defines: ["BUG_X"], isBug: true };
  const sound = { model: "inbox", defines: [], isBug: false };
  const clean = { report: "State-vector 84 byte, errors: 0\n  12 states, stored\n", trail: "" };
  const line = readModel("inbox")
    .split("\n")
    .findIndex((each) => each.includes("/* poison: "));
  const found = {
    report: clean.report.replace("errors: 0", "errors: 1"),
    trail: `spin: inbox.pml:${line + 1}, Error: assertion violated`,
  };
  expect(resultOf(sound, clean)).toMatchObject({ ok: true, states: "12", text: "no error" });
  expect(resultOf(bug, clean)).toMatchObject({ ok: false, text: "not found: no error" });
  expect(resultOf(bug, found)).toMatchObject({ ok: true, text: '"poison" is violated' });
  expect(resultOf(sound, found)).toMatchObject({ ok: false, text: '"poison" is violated' });
  const cut = { ...clean, report: `error: max search depth too small\n${clean.report}` };
  expect(resultOf(sound, cut)).toMatchObject({ ok: false, text: "the search is not complete" });
});
