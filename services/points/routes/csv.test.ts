import { expect, test } from "vitest";
import { csvRow } from "./csv.ts";

test("only cells that need it are quoted", () => {
  expect(csvRow(["a", "b c", 'say "hi"', "1,5", "two\nlines", "", undefined])).toBe(
    'a,b c,"say ""hi""","1,5","two\nlines",,\r\n',
  );
});

test("a text that looks like a formula gets an apostrophe, a number does not", () => {
  expect(csvRow(["=1+1", "+1", "-1", "@sum", "\t=1", "\r=1", '=cmd|"/c calc"!A1'])).toBe(
    `'=1+1,'+1,'-1,'@sum,'\t=1,"'\r=1","'=cmd|""/c calc""!A1"\r\n`,
  );
  expect(csvRow([-5n, 9_223_372_036_854_775_807n, "a=1"])).toBe("-5,9223372036854775807,a=1\r\n");
});
