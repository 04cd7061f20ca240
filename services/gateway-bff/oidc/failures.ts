/**
 * Problems for failures of the identity provider: it is unavailable, it refused, or its response is not valid. The libraries
 * attach claims and complete responses, tokens included, to their errors; the log gets only the messages.
 */
import { Problem } from "@todoke/kernel/problem";
import { AuthorizationResponseError, ResponseBodyError } from "openid-client";
import { identityNotProven, identityProviderUnavailable, loginNotPending, loginRefused } from "../problems.ts";
import { ProviderUnavailableError } from "./provider-fetch.ts";

export function toProviderProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const cause = withoutSecrets(error);
  if (isUnavailable(error)) return providerUnavailable(1, cause);
  if (error instanceof AuthorizationResponseError)
    return loginRefused(`the identity provider refused the login (${toErrorCode(error.error)}); you can try again`, {
      cause,
    });
  if (isInvalidGrant(error))
    return loginNotPending("the identity provider no longer knows this login; log in again", { cause });
  return identityNotProven("the identity provider's response cannot be trusted; log in again", { cause });
}

export const providerUnavailable = (retryAfterSeconds: number, cause?: Error): Problem =>
  identityProviderUnavailable("nobody can log in at the moment; existing sessions stay. Try again in a moment", {
    retryAfterSeconds,
    ...(cause && { cause }),
  });

/** The provider does not accept this code or refresh token, and never will. */
export const isInvalidGrant = (error: unknown): boolean =>
  error instanceof ResponseBodyError && error.error === "invalid_grant";

const unavailableCodes = ["temporarily_unavailable", "server_error"];

function isUnavailable(error: unknown): boolean {
  if (error instanceof AuthorizationResponseError) return unavailableCodes.includes(error.error);
  return errorChain(error).some((each) => each instanceof ProviderUnavailableError);
}

const chainMax = 6;

function errorChain(error: unknown): readonly Error[] {
  const chain: Error[] = [];
  for (let at = error; at instanceof Error && chain.length < chainMax; at = at.cause) chain.push(at);
  return chain;
}

/** Returns an error with the messages of the chain and nothing that is attached to it. */
export function withoutSecrets(error: unknown): Error {
  const messages = errorChain(error).map((each) => {
    const { error: errorCode, code } = each as { error?: unknown; code?: unknown };
    return [each.message, errorCode, code].filter((part) => typeof part === "string").join(" / ");
  });
  return new Error(messages.join(": ").slice(0, 500) || "the identity provider's response was not understood");
}

/** Shows a code from outside only if it looks like one of the protocol's. */
const toErrorCode = (text: string): string => (/^[a-z_]{1,64}$/.test(text) ? text : "no reason that can be shown");
