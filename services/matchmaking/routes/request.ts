/** Reads the caller of a request. */
import { type Principal, problems } from "@todoke/http";

/** The calling user. Only routes that admit users alone call this; anything else is rejected. */
export function callingUser({ principal }: { readonly principal: Principal | undefined }): string {
  if (principal?.kind !== "user") throw problems.forbidden("Only a user can call this route.");
  return principal.userId;
}
