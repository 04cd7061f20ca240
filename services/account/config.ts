/** The settings that only this service has. */
import { readList } from "@todoke/http";
import type { Env } from "@todoke/service";
import type { IdentityName } from "./store/identities.ts";

export interface Settings {
  /** Identities that get the role ADMIN whenever they log in: the first admin, and recovery when there is none left. */
  readonly admins: readonly IdentityName[];
}

const entryPattern = /^(\S{1,256}) (\S{1,255})$/;

export function readSettings(env: Env, errors: string[]): Settings {
  const admins = readList(env.ACCOUNT_ADMINS).flatMap((entry, index) => {
    const [, provider, subject] = entryPattern.exec(entry) ?? [];
    if (provider && subject) return [{ provider, subject }];
    errors.push(`ACCOUNT_ADMINS: entry ${index + 1} should be <provider> <subject>, with one space between them`);
    return [];
  });
  return { admins };
}
