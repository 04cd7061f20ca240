/** Staff takes a product back from a user. */
import { changeAsStaff, type StaffChangeDeps, type StaffChangeRequest } from "./change-as-staff.ts";

export const revokeEntitlementAsStaff = (deps: StaffChangeDeps) => (request: StaffChangeRequest) =>
  changeAsStaff(deps, request, {
    act: "revokeEntitlementAsStaff",
    inverse: "grantEntitlementAsStaff",
    status: "REVOKED",
    event_type: "EntitlementRevoked",
    expires_at: null,
  });
