/** The operator and the reason of a recorded command (a redrive, a new key, a revocation). */
import { userInfo } from "node:os";
import type { Invocation } from "./command.ts";
import { UsageError } from "./errors.ts";

/** --by and --reason, both required. */
export const parseOperatorReason = (values: Invocation["values"]) => ({
  by: parseOperator(values),
  reason: parseReason(values),
});

/** --by, or else the user who runs the command. */
export function parseOperator({ by = username() }: Invocation["values"]): string {
  if (!by.trim() || by.length > 128) throw new UsageError("Give your name with --by, 1 to 128 characters.");
  return by;
}

function parseReason({ reason = "" }: Invocation["values"]): string {
  if (!reason.trim() || reason.length > 500) throw new UsageError("Give a reason with --reason, 1 to 500 characters.");
  return reason;
}

/** Empty if the user has no name, as in some containers. Then --by is required. */
function username(): string {
  try {
    return userInfo().username;
  } catch {
    return "";
  }
}
