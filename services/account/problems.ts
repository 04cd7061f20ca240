/** The problems that only this service returns. Clients depend on the codes: they never change. docs/errors.md lists them. */
import { problem } from "@todoke/kernel/problem";

export const userNotFound = problem(404, "user-not-found", "There is no such user");
export const userDeleted = problem(409, "user-deleted", "The user was deleted");
export const accountInactive = problem(403, "account-inactive", "The account of the caller is not active");
export const ifMatchMissing = problem(428, "if-match-missing", "The If-Match header is missing");
export const versionMismatch = problem(412, "version-mismatch", "The user has another version");
export const suspensionEndInThePast = problem(
  422,
  "suspension-end-in-the-past",
  "The suspension would be over already",
);
export const ownSuspension = problem(409, "own-suspension", "Users cannot suspend themselves");
export const lastAdmin = problem(409, "last-admin", "There would be no admin left");
