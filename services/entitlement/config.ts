/** The settings that only this service has. */
import { type Env, wholeNumbers } from "@todoke/http";

export interface Settings {
  readonly auditKeepMonths: number;
}

export function readSettings(env: Env, errors: string[]): Settings {
  return { auditKeepMonths: wholeNumbers(env, errors)("ENTITLEMENT_AUDIT_KEEP_MONTHS", 24, [1, 1_200]) };
}
