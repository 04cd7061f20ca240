/** Takes a product back from a user. */
import type { ChangeRequest, SubmitChange } from "./create-change-batcher.ts";

export function revokeEntitlement(submit: SubmitChange) {
  return (request: ChangeRequest) =>
    submit(request, { status: "REVOKED", event_type: "EntitlementRevoked", expires_at: null });
}
