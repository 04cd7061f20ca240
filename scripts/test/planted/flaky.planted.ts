import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

test("fails at first", () => {
  const mark = join(process.env.PLANTED_FOLDER ?? "", "has-run");
  const hasRun = existsSync(mark);
  writeFileSync(mark, "");
  expect(hasRun).toBe(true);
});
