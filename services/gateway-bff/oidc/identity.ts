/**
 * An identity, by which account finds or creates a user. Only issuer and subject identify a user; the rest is for
 * display, and a value that cannot be stored is left out and never fails a login.
 */
import { decodeJwt } from "jose";
import type { UserSnapshot } from "../sessions/index.ts";

export interface Identity {
  /** The issuer. */
  readonly provider: string;
  readonly subject: string;
  readonly email?: string;
  readonly email_verified?: boolean;
  readonly display_name?: string;
  readonly locale?: string;
}

export type ResolveIdentity = (identity: Identity) => Promise<UserSnapshot>;

export function toIdentity(who: { readonly issuer: string; readonly subject: string }, claims: Claims): Identity {
  const email = textClaim(claims.email, 254);
  const displayName = textClaim(claims.name, 100) ?? textClaim(claims.preferred_username, 100);
  const locale = textClaim(claims.locale, 35);
  return {
    provider: who.issuer,
    subject: who.subject,
    // Some providers send the flag as text. Anything but true is not verified.
    ...(email && { email, email_verified: claims.email_verified === true || claims.email_verified === "true" }),
    ...(displayName && { display_name: displayName }),
    ...(locale && /^[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*$/.test(locale) && { locale: locale.replaceAll("_", "-") }),
  };
}

/** The claims of a stored ID token, which was verified at the login. */
export function claimsOf(idToken: string | undefined): Claims {
  try {
    return decodeJwt(idToken ?? "");
  } catch {
    return {}; // The next login brings them.
  }
}

export type Claims = Readonly<Record<string, unknown>>;

/** Many providers send the profile only from their userinfo endpoint. */
export const hasProfileClaims = ({ email, name, preferred_username }: Claims): boolean =>
  [email, name, preferred_username].some((claim) => claim !== undefined);

function textClaim(claim: unknown, lengthMax: number): string | undefined {
  if (typeof claim !== "string" || !claim.isWellFormed()) return undefined;
  const text = claim.trim();
  return text.length > 0 && text.length <= lengthMax && !/\p{Cc}/u.test(text) ? text : undefined;
}
