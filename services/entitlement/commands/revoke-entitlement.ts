/** Takes a product back from a user. */
import type { Answer } from "@todoke/kernel/idempotency";
import type { ChangeRequest, SubmitChange } from "./change-batcher.ts";

export type RevokeEntitlement = (request: ChangeRequest) => Promise<Answer>;

export function revokeEntitlement(submit: SubmitChange): RevokeEntitlement {
  return (request) => submit(request, { status: "REVOKED", event_type: "EntitlementRevoked", expires_at: null });
}
