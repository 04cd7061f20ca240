/** How a command that failed is counted, the same in every service. */
import { CommitUnknown } from "../db/index.ts";
import { Problem } from "../problem/index.ts";

/** "refused": it can never be. "conflict": it met something else. "unknown": the COMMIT was lost. "failed": our fault. */
export function resultOf(error: unknown): "conflict" | "failed" | "refused" | "unknown" {
  if (error instanceof CommitUnknown) return "unknown";
  if (!(error instanceof Problem)) return "failed";
  if (error.status === 409 || error.status === 412) return "conflict";
  return error.status < 500 ? "refused" : "failed";
}
