/** Who asks for what is kept with a name: a redrive, a new key, a revocation. */
import { userInfo } from "node:os";
import type { Call } from "./command.ts";
import { Misused } from "./faults.ts";

/** What --by says, or else the user who runs this. */
export function askerOf({ by = username() }: Call["values"]): string {
  if (!by.trim() || by.length > 128) throw new Misused("Say who asks for it: --by with 1 to 128 characters.");
  return by;
}

/** Empty where the system has no name for whoever runs this, as in some containers: then --by must say it. */
function username(): string {
  try {
    return userInfo().username;
  } catch {
    return "";
  }
}
