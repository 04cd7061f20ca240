/**
 * Every problem that the gateway itself returns. Clients branch on the codes, so they never change. docs/errors.md lists
 * them, and language/problem-texts.ts has each one in Japanese; tests check both.
 */
import { problem } from "@todoke/kernel/problem";

/** Failures of the services behind the gateway. The code names the service, so that its reader knows where to look. */
export const upstreamProblems = {
  account: {
    timeout: problem(504, "ACCOUNT_TIMEOUT", "account timed out"),
    badGateway: problem(502, "ACCOUNT_BAD_GATEWAY", "Bad response from account"),
    unavailable: problem(503, "ACCOUNT_UNAVAILABLE", "account is unavailable"),
  },
  entitlement: {
    timeout: problem(504, "ENTITLEMENT_TIMEOUT", "entitlement timed out"),
    badGateway: problem(502, "ENTITLEMENT_BAD_GATEWAY", "Bad response from entitlement"),
    unavailable: problem(503, "ENTITLEMENT_UNAVAILABLE", "entitlement is unavailable"),
  },
  notification: {
    timeout: problem(504, "NOTIFICATION_TIMEOUT", "notification timed out"),
    badGateway: problem(502, "NOTIFICATION_BAD_GATEWAY", "Bad response from notification"),
    unavailable: problem(503, "NOTIFICATION_UNAVAILABLE", "notification is unavailable"),
  },
  matchmaking: {
    timeout: problem(504, "MATCHMAKING_TIMEOUT", "matchmaking timed out"),
    badGateway: problem(502, "MATCHMAKING_BAD_GATEWAY", "Bad response from matchmaking"),
    unavailable: problem(503, "MATCHMAKING_UNAVAILABLE", "matchmaking is unavailable"),
  },
  points: {
    timeout: problem(504, "POINTS_TIMEOUT", "points timed out"),
    badGateway: problem(502, "POINTS_BAD_GATEWAY", "Bad response from points"),
    unavailable: problem(503, "POINTS_UNAVAILABLE", "points is unavailable"),
  },
  orders: {
    timeout: problem(504, "ORDERS_TIMEOUT", "orders timed out"),
    badGateway: problem(502, "ORDERS_BAD_GATEWAY", "Bad response from orders"),
    unavailable: problem(503, "ORDERS_UNAVAILABLE", "orders is unavailable"),
  },
} as const;

export type UpstreamName = keyof typeof upstreamProblems;

export const profileUnavailable = problem(503, "profile-unavailable", "No part of the profile is available");
export const sessionNotFound = problem(404, "session-not-found", "The user has no such session");
export const changeNotPropagated = problem(
  503,
  "change-not-spread",
  "The change is committed, but sessions are not updated yet",
);
export const accountInactive = problem(403, "ACCOUNT_INACTIVE", "The account cannot be used");
export const credentialsAmbiguous = problem(400, "credentials-ambiguous", "The request has two credentials");
export const csrfRefused = problem(403, "csrf-refused", "The request does not come from this site");
export const reauthenticationRequired = problem(403, "reauthentication-required", "This needs a fresh login");
export const identityProviderUnavailable = problem(
  503,
  "identity-provider-unavailable",
  "The identity provider is unavailable",
);
export const identityNotProven = problem(502, "identity-not-proven", "The identity provider's response is not valid");
export const loginNotPending = problem(400, "login-not-under-way", "This login is not in progress");
export const loginRefused = problem(403, "login-refused", "The login was refused");
export const nativeLoginInvalid = problem(
  400,
  "native-login-invalid",
  "The login request of a native client is not valid",
);
export const nativeCodeRefused = problem(400, "native-code-refused", "The code is not valid");
export const logoutTokenRefused = problem(400, "logout-token-refused", "The logout token is not valid");
