/** What a user may be called and which language they may ask for: the same rule for themselves and for a provider's word. */
import type { Claims } from "./store/identities.ts";

/**
 * One line of 1 to 100 characters, no space at its ends, and nothing that hides or turns round what stands beside it: a
 * name is shown next to others.
 */
export const displayNamePattern =
  "^(?!\\s)(?!.*\\s$)[^\\p{Cc}\\p{Zl}\\p{Zp}\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]{1,100}$";
const displayName = new RegExp(displayNamePattern, "u");

/** The canonical form of a BCP 47 language tag; undefined when it is none. */
export function canonicalLocale(tag: string): string | undefined {
  try {
    return Intl.getCanonicalLocales(tag)[0];
  } catch {
    return undefined;
  }
}

/** Of what a provider says, that which a user could have chosen; the rest is kept with the identity only. */
export function profileOf({ email, display_name = "", locale = "" }: Claims): Claims {
  // Some providers write en_US.
  const tag = canonicalLocale(locale.replaceAll("_", "-"));
  return {
    ...(email !== undefined && { email }),
    ...(displayName.test(display_name) && { display_name }),
    ...(tag !== undefined && { locale: tag }),
  };
}
