/** What the routes of this service read from a request in the same way. */
import { type Principal, problems } from "@todoke/http";

/** The user who calls. Rules let nobody but users in where this is asked; a route that forgets so refuses. */
export function playerOf({ principal }: { readonly principal: Principal | undefined }): string {
  if (principal?.kind !== "user") throw problems.forbidden("only a user can do this");
  return principal.userId;
}
