/**
 * All that the gateway refuses by itself. Clients branch on the codes: they never change; docs/errors.md lists them, and
 * texts.ts has each in Japanese too (both checked by a test).
 */
import { problem } from "@todoke/kernel/problem";

/** What went wrong between us and a service, told apart by service: whoever reads the code knows where to look. */
export const upstreamProblems = {
  account: {
    timeout: problem({ code: "ACCOUNT_TIMEOUT", status: 504, title: "account did not answer in time" }),
    badGateway: problem({ code: "ACCOUNT_BAD_GATEWAY", status: 502, title: "account did not answer as it should" }),
    unavailable: problem({ code: "ACCOUNT_UNAVAILABLE", status: 503, title: "account cannot be asked just now" }),
  },
  entitlement: {
    timeout: problem({ code: "ENTITLEMENT_TIMEOUT", status: 504, title: "entitlement did not answer in time" }),
    badGateway: problem({
      code: "ENTITLEMENT_BAD_GATEWAY",
      status: 502,
      title: "entitlement did not answer as it should",
    }),
    unavailable: problem({
      code: "ENTITLEMENT_UNAVAILABLE",
      status: 503,
      title: "entitlement cannot be asked just now",
    }),
  },
  notification: {
    timeout: problem({ code: "NOTIFICATION_TIMEOUT", status: 504, title: "notification did not answer in time" }),
    badGateway: problem({
      code: "NOTIFICATION_BAD_GATEWAY",
      status: 502,
      title: "notification did not answer as it should",
    }),
    unavailable: problem({
      code: "NOTIFICATION_UNAVAILABLE",
      status: 503,
      title: "notification cannot be asked just now",
    }),
  },
  matchmaking: {
    timeout: problem({ code: "MATCHMAKING_TIMEOUT", status: 504, title: "matchmaking did not answer in time" }),
    badGateway: problem({
      code: "MATCHMAKING_BAD_GATEWAY",
      status: 502,
      title: "matchmaking did not answer as it should",
    }),
    unavailable: problem({
      code: "MATCHMAKING_UNAVAILABLE",
      status: 503,
      title: "matchmaking cannot be asked just now",
    }),
  },
  points: {
    timeout: problem({ code: "POINTS_TIMEOUT", status: 504, title: "points did not answer in time" }),
    badGateway: problem({ code: "POINTS_BAD_GATEWAY", status: 502, title: "points did not answer as it should" }),
    unavailable: problem({ code: "POINTS_UNAVAILABLE", status: 503, title: "points cannot be asked just now" }),
  },
} as const;

export const profileUnavailable = problem({
  code: "profile-unavailable",
  status: 503,
  title: "No part of the profile can be had just now",
});

export const sessionNotFound = problem({
  code: "session-not-found",
  status: 404,
  title: "The user has no such session",
});

export const changeNotSpread = problem({
  code: "change-not-spread",
  status: 503,
  title: "The change is made but does not count everywhere yet",
});

export const accountInactive = problem({
  code: "ACCOUNT_INACTIVE",
  status: 403,
  title: "The account cannot be used",
});

export const credentialsAmbiguous = problem({
  code: "credentials-ambiguous",
  status: 400,
  title: "The request comes with two sessions",
});

export const csrfRefused = problem({
  code: "csrf-refused",
  status: 403,
  title: "The request does not come from this site",
});

export const reauthenticationRequired = problem({
  code: "reauthentication-required",
  status: 403,
  title: "This needs a fresh log-in",
});

export const rateLimited = problem({ code: "rate-limited", status: 429, title: "Too many requests" });
