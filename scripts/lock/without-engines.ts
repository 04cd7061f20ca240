/**
 * Removes `engines` from the lock files. The repository runs on its own Node, so npm's warnings (EBADENGINE) about the Node
 * that runs `npm ci` are misleading.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { lockFiles } from "./faults.ts";

const root = new URL("../../", import.meta.url);

for (const file of lockFiles) {
  const path = fileURLToPath(new URL(file, root));
  const lock: { packages: Record<string, { engines?: unknown }> } = JSON.parse(readFileSync(path, "utf8"));
  for (const [place, entry] of Object.entries(lock.packages)) if (place.includes("node_modules/")) delete entry.engines;
  writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`);
}
