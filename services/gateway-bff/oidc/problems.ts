/** All that a log-in or a log-out refuses. Clients branch on the codes: they never change; docs/errors.md lists them. */
import { problem } from "@todoke/kernel/problem";

export const identityProviderUnavailable = problem({
  code: "identity-provider-unavailable",
  status: 503,
  title: "The identity provider cannot be reached",
});

export const identityNotProven = problem({
  code: "identity-not-proven",
  status: 502,
  title: "The identity provider's answer proves nothing",
});

export const loginNotUnderWay = problem({
  code: "login-not-under-way",
  status: 400,
  title: "This log-in is not under way",
});

export const loginRefused = problem({
  code: "login-refused",
  status: 403,
  title: "The log-in was refused",
});

export const nativeLoginInvalid = problem({
  code: "native-login-invalid",
  status: 400,
  title: "A native client cannot log in like this",
});

export const nativeCodeRefused = problem({
  code: "native-code-refused",
  status: 400,
  title: "The code opens no session",
});

export const logoutTokenRefused = problem({
  code: "logout-token-refused",
  status: 400,
  title: "The log-out token proves nothing",
});
