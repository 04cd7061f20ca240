/**
 * Every problem that the gateway itself returns. Clients branch on the codes, so they never change. docs/errors.md lists
 * them, and language/problem-texts.ts has each one in Japanese; tests check both.
 */
import { problem } from "@todoke/kernel/problem";

/** Failures of the services behind the gateway. The code names the service, so that its reader knows where to look. */
export const upstreamProblems = {
  account: {
    timeout: problem({ code: "ACCOUNT_TIMEOUT", status: 504, title: "account timed out" }),
    badGateway: problem({ code: "ACCOUNT_BAD_GATEWAY", status: 502, title: "Bad response from account" }),
    unavailable: problem({ code: "ACCOUNT_UNAVAILABLE", status: 503, title: "account is unavailable" }),
  },
  entitlement: {
    timeout: problem({ code: "ENTITLEMENT_TIMEOUT", status: 504, title: "entitlement timed out" }),
    badGateway: problem({ code: "ENTITLEMENT_BAD_GATEWAY", status: 502, title: "Bad response from entitlement" }),
    unavailable: problem({ code: "ENTITLEMENT_UNAVAILABLE", status: 503, title: "entitlement is unavailable" }),
  },
  notification: {
    timeout: problem({ code: "NOTIFICATION_TIMEOUT", status: 504, title: "notification timed out" }),
    badGateway: problem({ code: "NOTIFICATION_BAD_GATEWAY", status: 502, title: "Bad response from notification" }),
    unavailable: problem({ code: "NOTIFICATION_UNAVAILABLE", status: 503, title: "notification is unavailable" }),
  },
  matchmaking: {
    timeout: problem({ code: "MATCHMAKING_TIMEOUT", status: 504, title: "matchmaking timed out" }),
    badGateway: problem({ code: "MATCHMAKING_BAD_GATEWAY", status: 502, title: "Bad response from matchmaking" }),
    unavailable: problem({ code: "MATCHMAKING_UNAVAILABLE", status: 503, title: "matchmaking is unavailable" }),
  },
  points: {
    timeout: problem({ code: "POINTS_TIMEOUT", status: 504, title: "points timed out" }),
    badGateway: problem({ code: "POINTS_BAD_GATEWAY", status: 502, title: "Bad response from points" }),
    unavailable: problem({ code: "POINTS_UNAVAILABLE", status: 503, title: "points is unavailable" }),
  },
} as const;

export type UpstreamName = keyof typeof upstreamProblems;

export const profileUnavailable = problem({
  code: "profile-unavailable",
  status: 503,
  title: "No part of the profile is available",
});

export const sessionNotFound = problem({
  code: "session-not-found",
  status: 404,
  title: "The user has no such session",
});

export const changeNotPropagated = problem({
  code: "change-not-spread",
  status: 503,
  title: "The change is committed, but sessions are not updated yet",
});

export const accountInactive = problem({
  code: "ACCOUNT_INACTIVE",
  status: 403,
  title: "The account cannot be used",
});

export const credentialsAmbiguous = problem({
  code: "credentials-ambiguous",
  status: 400,
  title: "The request has two credentials",
});

export const csrfRefused = problem({
  code: "csrf-refused",
  status: 403,
  title: "The request does not come from this site",
});

export const reauthenticationRequired = problem({
  code: "reauthentication-required",
  status: 403,
  title: "This needs a fresh login",
});

export const rateLimited = problem({ code: "rate-limited", status: 429, title: "Too many requests" });

export const identityProviderUnavailable = problem({
  code: "identity-provider-unavailable",
  status: 503,
  title: "The identity provider is unavailable",
});

export const identityNotProven = problem({
  code: "identity-not-proven",
  status: 502,
  title: "The identity provider's response is not valid",
});

export const loginNotPending = problem({
  code: "login-not-under-way",
  status: 400,
  title: "This login is not in progress",
});

export const loginRefused = problem({
  code: "login-refused",
  status: 403,
  title: "The login was refused",
});

export const nativeLoginInvalid = problem({
  code: "native-login-invalid",
  status: 400,
  title: "The login request of a native client is not valid",
});

export const nativeCodeRefused = problem({
  code: "native-code-refused",
  status: 400,
  title: "The code is not valid",
});

export const logoutTokenRefused = problem({
  code: "logout-token-refused",
  status: 400,
  title: "The logout token is not valid",
});
