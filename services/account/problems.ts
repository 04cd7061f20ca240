/** The problems that only this service returns. Clients depend on the codes: they never change. docs/errors.md lists them. */
import { problem } from "@todoke/kernel/problem";

export const userNotFound = problem({ code: "user-not-found", status: 404, title: "There is no such user" });

export const userDeleted = problem({ code: "user-deleted", status: 409, title: "The user was deleted" });

export const accountInactive = problem({
  code: "account-inactive",
  status: 403,
  title: "The account of the caller is not active",
});

export const ifMatchMissing = problem({
  code: "if-match-missing",
  status: 428,
  title: "The If-Match header is missing",
});

export const versionMismatch = problem({
  code: "version-mismatch",
  status: 412,
  title: "The user has another version",
});

export const suspensionEndInThePast = problem({
  code: "suspension-end-in-the-past",
  status: 422,
  title: "The suspension would be over already",
});

export const ownSuspension = problem({
  code: "own-suspension",
  status: 409,
  title: "Users cannot suspend themselves",
});

export const lastAdmin = problem({ code: "last-admin", status: 409, title: "There would be no admin left" });
