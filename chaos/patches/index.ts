/**
 * Failpoints and planted defects: patches that exist only in processes of a run (see ./instrument.ts). Add failpoints to
 * failpoints.ts and defects to a file in planted/.
 */
import { claimsOnly as claimsOnlyPatches } from "./claims-only.ts";
import { type Failpoint, failpoints } from "./failpoints.ts";
import { type Patch, patched } from "./patch.ts";
import type { Planted } from "./planted/defect.ts";
import { planted } from "./planted/index.ts";

export type { Planted };
export { failpoints, planted };

export interface Wanted {
  readonly planted?: readonly Planted[];
  readonly failpoints?: readonly Failpoint[];
  /** Work is done by claims, and never in the transaction that completes its row. */
  readonly claimsOnly?: boolean;
}

/** In the order of application. A patch that several failpoints share is applied once. */
export function patchesFor({ planted = [], failpoints = [], claimsOnly = false }: Wanted): readonly Patch[] {
  const wanted = [...planted, ...failpoints].flatMap(({ patches }) => patches);
  return [...new Set([...wanted, ...(claimsOnly ? claimsOnlyPatches : [])])];
}

/** At the end of a patched file, so that lines keep their numbers. */
const reachable = `\nimport { reach, reachWaiting, withFailpoints } from "${new URL("./reach.ts", import.meta.url)}";\n`;

/** Returns the source of a file with its patches; undefined if it has none. `file` is from the root of the repository. */
export function patchSource(file: string, source: string, patches: readonly Patch[]): string | undefined {
  return patches.some((patch) => patch.file === file) ? patched(file, source, patches) + reachable : undefined;
}
