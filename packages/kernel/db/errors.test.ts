import { expect, test } from "vitest";
import { isRolledBack, isUnavailable } from "./errors.ts";

const answer = (code: string) => Object.assign(new Error("told by the server"), { code, severity: "ERROR" });

test("only an answer of a session that goes on proves that a transaction was rolled back", () => {
  for (const code of ["23505", "40001", "57014", "55P03"]) expect(isRolledBack(answer(code)), code).toBe(true);
  // A session that is ended may say so after its commit was written.
  for (const code of ["57P01", "57P02", "57P03", "08006"]) expect(isRolledBack(answer(code)), code).toBe(false);
  expect(isRolledBack(Object.assign(new Error("connection reset"), { code: "ECONNRESET" }))).toBe(false);
});

test("a database that cannot do its part now is told from one that refuses the request", () => {
  for (const code of ["25006", "57P01", "55P03", "08006", "53300"])
    expect(isUnavailable(answer(code)), code).toBe(true);
  for (const code of ["23505", "22P02", "42P01", "57014"]) expect(isUnavailable(answer(code)), code).toBe(false);
  expect(isUnavailable(new Error("while saving", { cause: answer("57P03") }))).toBe(true);
});
