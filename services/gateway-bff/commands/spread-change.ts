/**
 * What an admin has changed in account counts here before the admin hears that it is done: from then on every gateway
 * process refuses a suspended user, and knows the roles of all others.
 *
 * When it cannot be written the admin gets a 503, and the same request sent again is answered by account as before and
 * written then. Should nobody send it again, account's event brings the same (on-account-event.ts).
 */
import { changeNotSpread } from "../problems.ts";
import type { SessionStore } from "../sessions/index.ts";
import { knownUserOf } from "./known-user.ts";

export async function spreadChange(sessions: Pick<SessionStore, "know">, answer: unknown): Promise<void> {
  const user = knownUserOf(answer);
  try {
    await sessions.know(user);
  } catch (cause) {
    const detail = "the change is made, but sessions could not be told; send it again with the same Idempotency-Key";
    throw changeNotSpread(detail, { cause, retryAfterSeconds: 1 });
  }
}
