/**
 * Saves a change that an admin made in account before the admin gets the response: from then on every gateway process
 * refuses a suspended user and uses the new roles.
 *
 * If the store fails, the admin gets a 503, and a retry with the same key gets account's stored response and saves it.
 * Without a retry, account's event brings the same change (events/on-account-event.ts).
 */
import { changeNotPropagated } from "../problems.ts";
import type { SessionStore } from "../sessions/index.ts";
import { parseUser } from "../upstreams/user-view.ts";

export async function propagateUserChange(
  sessions: Pick<SessionStore, "saveUser">,
  accountResponse: unknown,
): Promise<void> {
  const user = parseUser(accountResponse);
  try {
    await sessions.saveUser(user);
  } catch (cause) {
    const detail = "The change is committed, but sessions are not updated yet. Retry with the same Idempotency-Key.";
    throw changeNotPropagated(detail, { cause, retryAfterSeconds: 1 });
  }
}
