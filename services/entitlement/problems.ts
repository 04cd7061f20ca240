/** The problems that only this service returns. Clients depend on the codes: they never change. docs/errors.md lists them. */
import { problem } from "@todoke/kernel/problem";

export const entitlementNotFound = problem({
  code: "entitlement-not-found",
  status: 404,
  title: "The user has never had this product",
});

export const expiryInThePast = problem({
  code: "expiry-in-the-past",
  status: 422,
  title: "The grant would have expired already",
});
