/** Takes a product back from a user. */
import type { ChangeRequest, SubmitChange } from "./change-batcher.ts";

export function revokeEntitlement(submit: SubmitChange) {
  return (request: ChangeRequest) =>
    submit(request, { status: "REVOKED", event_type: "EntitlementRevoked", expires_at: null });
}
