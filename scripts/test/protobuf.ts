/** The event contracts: buf's lint, and its check against breaking changes. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { check, root } from "./command.ts";
import { type Result, skipped } from "./result.ts";

export async function protobuf(signal: AbortSignal): Promise<Result> {
  const { scripts }: { scripts?: { check?: string } } = JSON.parse(
    readFileSync(join(root, "packages/contracts/package.json"), "utf8"),
  );
  if (scripts?.check === undefined) return skipped("protobuf: packages/contracts has no script named check.");
  return check(["npm", "run", "--silent", "--workspace", "packages/contracts", "check"], signal);
}
