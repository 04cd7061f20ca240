/** Lets a user use a product, until `expires_at` or without an end. */
import type { ChangeRequest, SubmitChange } from "./create-change-batcher.ts";

export interface GrantRequest extends ChangeRequest {
  /** RFC 3339, stored to the millisecond. Without it the grant does not expire. */
  readonly expires_at?: string;
}

export function grantEntitlement(submit: SubmitChange) {
  return (request: GrantRequest) =>
    submit(request, {
      status: "ACTIVE",
      event_type: "EntitlementGranted",
      // In UTC, because RFC 3339 allows offsets that PostgreSQL does not.
      expires_at: request.expires_at === undefined ? null : new Date(request.expires_at).toISOString(),
    });
}
