/** What became of one command among many that was not carried out, told as the whole answer would tell it (RFC 9457). */
import { problems } from "@todoke/http";
import { CommitUnknown, isUnavailable } from "@todoke/kernel/db";
import { Problem } from "@todoke/kernel/problem";

/** An expected refusal as it is; a lost commit and a database that is away by their names; anything else is our fault. */
export function problemOfItem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof CommitUnknown)
    return problems.outcomeUnknown("it may have taken effect or not; send it again with the same key", {
      cause: error,
    });
  if (isUnavailable(error))
    return problems.unavailable("a part of the service cannot be reached; try again", { cause: error });
  return problems.internal("the fault is on our side and has been noted; a try with the same key does no harm", {
    cause: error,
  });
}
