/** The settings that only this service has. */
import { readList, type StaffRole, staffRoles } from "@todoke/http";
import type { Env } from "@todoke/service";
import type { IdentityName } from "./store/identities.ts";

/** An identity that gets the role whenever it logs in. */
export interface StaffIdentity extends IdentityName {
  readonly role: StaffRole;
}

export interface Settings {
  /** The first staff, and recovery when there is no admin left. */
  readonly staff: readonly StaffIdentity[];
}

/** The variables that list the identities of each role. */
export const staffVariables: Readonly<Record<StaffRole, string>> = {
  VIEWER: "ACCOUNT_VIEWERS",
  OPERATOR: "ACCOUNT_OPERATORS",
  ADMIN: "ACCOUNT_ADMINS",
};

const entryPattern = /^(\S{1,256}) (\S{1,255})$/;

export function readSettings(env: Env, errors: string[]): Settings {
  return { staff: staffRoles.flatMap((role) => readIdentities(role, env, errors)) };
}

function readIdentities(role: StaffRole, env: Env, errors: string[]): StaffIdentity[] {
  const variable = staffVariables[role];
  return readList(env[variable]).flatMap((entry, index) => {
    const [, provider, subject] = entryPattern.exec(entry) ?? [];
    if (provider && subject) return [{ provider, subject, role }];
    errors.push(`${variable}: entry ${index + 1} should be <provider> <subject>, with one space between them`);
    return [];
  });
}
