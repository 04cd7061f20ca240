import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { passOnLines } from "./lines.ts";

test("output is passed on in whole lines; the last one needs no line break", async () => {
  const from = new PassThrough();
  const written: string[] = [];
  passOnLines(from, (lines) => written.push(lines));
  for (const part of ["a", "b\nc\nd", "e", "\nf"]) from.write(part);
  from.end();
  await new Promise((resolve) => from.once("close", resolve));
  expect(written).toEqual(["ab\nc\n", "de\n", "f\n"]);
});
