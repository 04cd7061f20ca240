import { expect, test } from "vitest";
import { isRolledBack, isUnavailable } from "./errors.ts";

const serverError = (code: string) => Object.assign(new Error("from the server"), { code, severity: "ERROR" });

test("only an error of a live session proves that the transaction was rolled back", () => {
  for (const code of ["23505", "40001", "57014", "55P03"]) expect(isRolledBack(serverError(code)), code).toBe(true);
  // A terminated session may report its error after the commit was written.
  for (const code of ["57P01", "57P02", "57P03", "08006"]) expect(isRolledBack(serverError(code)), code).toBe(false);
  expect(isRolledBack(Object.assign(new Error("connection reset"), { code: "ECONNRESET" }))).toBe(false);
});

test("a process that cannot open a connection finds the database unavailable", () => {
  for (const code of ["ECONNREFUSED", "EAI_AGAIN", "EMFILE", "ENFILE"])
    expect(isUnavailable(Object.assign(new Error(`connect ${code} 127.0.0.1:5432`), { code })), code).toBe(true);
  expect(isUnavailable(Object.assign(new Error("no"), { code: "EACCES" }))).toBe(false);
});

test("an unavailable database is distinguished from a rejected request", () => {
  for (const code of ["25006", "57P01", "55P03", "08006", "53300"])
    expect(isUnavailable(serverError(code)), code).toBe(true);
  for (const code of ["23505", "22P02", "42P01", "57014"]) expect(isUnavailable(serverError(code)), code).toBe(false);
  expect(isUnavailable(new Error("while saving", { cause: serverError("57P03") }))).toBe(true);
});
