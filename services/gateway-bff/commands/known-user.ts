/** What the gateway keeps of a user, taken from what account answers. */
import type { Static } from "typebox";
import { Value } from "typebox/value";
import { upstreamProblems } from "../problems.ts";
import { UserView } from "../routes/schemas.ts";
import type { KnownUser } from "../sessions/index.ts";

/** Throws when it is no user: to guess at who may come in is worse than to fail. */
export function knownUserOf(answer: unknown): KnownUser {
  if (!Value.Check(UserView, answer)) throw upstreamProblems.account.badGateway("account: what it answered is no user");
  const { user_id, status, roles, version, suspended_until }: Static<typeof UserView> = answer;
  return {
    userId: user_id,
    status,
    roles,
    version,
    ...(suspended_until !== undefined && { suspendedUntil: suspended_until }),
  };
}
