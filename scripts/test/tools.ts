/** Fetches the programs of tools/ that only the tests need, unless they are there: buf and, for Linux on x64, Chromium. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { check, root } from "./command.ts";
import { passed, type Result, skipped } from "./result.ts";

const tools = join(root, "tools");
const writtenAt = (file: string): number => statSync(join(tools, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
/** npm writes the second file when it has installed everything in the first. */
const areFetched = (): boolean => writtenAt("node_modules/.package-lock.json") >= writtenAt("package-lock.json");

export async function fetchTools(signal: AbortSignal): Promise<Result> {
  if (areFetched()) return passed;
  const result = await check(["npm", "ci", "--prefix", tools], signal);
  return result.failed > 0
    ? skipped("tools/ could not be fetched: event contracts and browser tests need it. Try `npm ci --prefix tools`.")
    : result;
}
