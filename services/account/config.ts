/** What only this service takes from the environment. */
import type { Env } from "@todoke/service";
import type { IdentityName } from "./store/identities.ts";

export interface Settings {
  /** Identities that are given the role ADMIN whenever they log in: the first admin, and the way back in. */
  readonly admins: readonly IdentityName[];
}

const entry = /^(\S{1,256}) (\S{1,255})$/;

export function readSettings(env: Env, faults: string[]): Settings {
  const given = (env.ACCOUNT_ADMINS ?? "").split(",").map((text) => text.trim());
  const admins = given.filter(Boolean).flatMap((text, place) => {
    const [, provider, subject] = entry.exec(text) ?? [];
    if (provider && subject) return [{ provider, subject }];
    faults.push(`ACCOUNT_ADMINS: entry ${place + 1} should be <provider> <subject>, with one space between them`);
    return [];
  });
  return { admins };
}
