/** The `result` label of a failed command, the same in every service. */
import { CommitUnknown } from "../db/index.ts";
import { Problem } from "../problem/index.ts";

/** refused: a permanent refusal. conflict: 409 or 412. unknown: the COMMIT was lost. failed: an error on our side. */
export function toResultLabel(error: unknown): "conflict" | "failed" | "refused" | "unknown" {
  if (error instanceof CommitUnknown) return "unknown";
  if (!(error instanceof Problem)) return "failed";
  if (error.status === 409 || error.status === 412) return "conflict";
  return error.status < 500 ? "refused" : "failed";
}
