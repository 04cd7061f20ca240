/** The settings that only this service has. */
import { type Env, integerReader } from "@todoke/service";

export interface Settings {
  /** Full months for which the audit is kept. */
  readonly auditKeepMonths: number;
}

export function readSettings(env: Env, errors: string[]): Settings {
  return { auditKeepMonths: integerReader(env, errors)("ENTITLEMENT_AUDIT_KEEP_MONTHS", 24, [1, 1_200]) };
}
