/**
 * What a failure with the identity provider means to who logs in: it is away (try again soon), it refused, or its answer
 * proves nothing. The libraries hang claims and whole answers, tokens included, on their errors as causes: of those our
 * log gets the words and nothing else.
 */
import { Problem } from "@todoke/kernel/problem";
import { AuthorizationResponseError, ResponseBodyError } from "openid-client";
import { identityNotProven, identityProviderUnavailable, loginNotUnderWay, loginRefused } from "./problems.ts";
import { ProviderAway } from "./provider-fetch.ts";

export function problemOfProvider(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const cause = wordsOf(error);
  if (isAway(error)) return unavailable(1, cause);
  if (error instanceof AuthorizationResponseError) {
    return loginRefused(`the identity provider let nobody in (${plain(error.error)}); you can try again`, { cause });
  }
  if (isSpent(error)) {
    return loginNotUnderWay("the identity provider no longer knows this log-in; begin again", { cause });
  }
  return identityNotProven("what the identity provider answered cannot be trusted, so nobody was let in; begin again", {
    cause,
  });
}

export const unavailable = (retryAfterSeconds: number, cause?: Error): Problem =>
  identityProviderUnavailable("nobody can log in just now; who is logged in stays so. Try again in a moment", {
    retryAfterSeconds,
    ...(cause && { cause }),
  });

/** The provider does not take this code, or this refresh token, and never will again. */
export const isSpent = (error: unknown): boolean =>
  error instanceof ResponseBodyError && error.error === "invalid_grant";

const away = ["temporarily_unavailable", "server_error"];

function isAway(error: unknown): boolean {
  if (error instanceof AuthorizationResponseError) return away.includes(error.error);
  return chainOf(error).some((each) => each instanceof ProviderAway);
}

const chainMax = 6;

function chainOf(error: unknown): readonly Error[] {
  const chain: Error[] = [];
  for (let at = error; at instanceof Error && chain.length < chainMax; at = at.cause) chain.push(at);
  return chain;
}

/** What went wrong, for our log: the messages of the chain, none of what hangs on it. */
export function wordsOf(error: unknown): Error {
  const words = chainOf(error).map((each) => {
    const { error: said, code } = each as { error?: unknown; code?: unknown };
    return [each.message, said, code].filter((part) => typeof part === "string").join(" / ");
  });
  return new Error(words.join(": ").slice(0, 500) || "the identity provider's answer was not understood");
}

/** A word from outside that we show: letters only, as the protocol's own are. */
const plain = (word: string): string => (/^[a-z_]{1,64}$/.test(word) ? word : "no reason that can be shown");
