/** The codes of all problems, as docs/errors.md lists them. A test compares that page with the code. */
import { readFileSync } from "node:fs";

export function readProblemCodes(): readonly string[] {
  const page = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
  const codes = [...page.matchAll(/^\| `([\w-]+)` \| \d{3} \|/gm)].map(([, code = ""]) => code);
  return [...new Set(codes)];
}
