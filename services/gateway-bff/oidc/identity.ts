/**
 * Who somebody is, in the words of the provider: what account is asked to find or make a user for. Only issuer and subject
 * say who it is; the rest is for show, and what cannot be kept of it is left out, never a reason to refuse a log-in.
 */
import type { KnownUser } from "../sessions/index.ts";

export interface Identity {
  /** The issuer. */
  readonly provider: string;
  readonly subject: string;
  readonly email?: string;
  readonly email_verified?: boolean;
  readonly display_name?: string;
  readonly locale?: string;
}

/** Asks account. */
export type ResolveIdentity = (identity: Identity) => Promise<KnownUser>;

export function identityOf(who: { readonly issuer: string; readonly subject: string }, claims: Claims): Identity {
  const email = textIn(claims.email, 254);
  const displayName = textIn(claims.name, 100) ?? textIn(claims.preferred_username, 100);
  const locale = textIn(claims.locale, 35);
  return {
    provider: who.issuer,
    subject: who.subject,
    // Some providers send the flag as text. What is not clearly true is not verified.
    ...(email && { email, email_verified: claims.email_verified === true || claims.email_verified === "true" }),
    ...(displayName && { display_name: displayName }),
    ...(locale && /^[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*$/.test(locale) && { locale: locale.replaceAll("_", "-") }),
  };
}

export type Claims = Readonly<Record<string, unknown>>;

/** Whether the claims say anything for show. Many providers tell it only at their userinfo endpoint. */
export const saysWho = ({ email, name, preferred_username }: Claims): boolean =>
  [email, name, preferred_username].some((claim) => claim !== undefined);

function textIn(claim: unknown, lengthMax: number): string | undefined {
  if (typeof claim !== "string" || !claim.isWellFormed()) return undefined;
  const text = claim.trim();
  return text.length > 0 && text.length <= lengthMax && !/\p{Cc}/u.test(text) ? text : undefined;
}
