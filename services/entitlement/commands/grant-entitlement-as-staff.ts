/** Staff lets a user use a product, until `expires_at` or without an end. */
import { changeAsStaff, type StaffChangeDeps, type StaffChangeRequest } from "./change-as-staff.ts";

export interface StaffGrantRequest extends StaffChangeRequest {
  /** RFC 3339. */
  readonly expires_at?: string;
}

export const grantEntitlementAsStaff =
  (deps: StaffChangeDeps) =>
  ({ expires_at, ...request }: StaffGrantRequest) =>
    changeAsStaff(deps, request, {
      act: "grantEntitlementAsStaff",
      inverse: "revokeEntitlementAsStaff",
      status: "ACTIVE",
      event_type: "EntitlementGranted",
      // In UTC, because RFC 3339 allows offsets that PostgreSQL does not.
      expires_at: expires_at === undefined ? null : new Date(expires_at).toISOString(),
    });
