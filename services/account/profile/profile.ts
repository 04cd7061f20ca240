/** Rules for display names and locales. They apply to users and to the claims of a provider alike. */

/**
 * One line of 1 to 100 characters, without a space at either end and without characters that hide or reverse the text
 * beside them: a display name is shown next to others.
 */
export const displayNamePattern =
  "^(?!\\s)(?!.*\\s$)[^\\p{Cc}\\p{Zl}\\p{Zp}\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]{1,100}$";
const displayName = new RegExp(displayNamePattern, "u");

export const isDisplayName = (text: string): boolean => displayName.test(text);

/** The canonical form of a BCP 47 language tag; undefined if it is not one. */
export function canonicalLocale(tag: string): string | undefined {
  try {
    return Intl.getCanonicalLocales(tag)[0];
  } catch {
    return undefined;
  }
}
