/** The problems that only this service returns. Clients depend on the codes: they never change. docs/errors.md lists them. */
import { problem } from "@todoke/kernel/problem";

export const entitlementNotFound = problem(404, "entitlement-not-found", "The user has never had this product");
export const expiryInThePast = problem(422, "expiry-in-the-past", "The grant would have expired already");
