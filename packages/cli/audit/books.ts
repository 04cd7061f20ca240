/** Our orders against the books of the broker that the settings name. */
import type { Audit } from "@todoke/kernel/audit";
import { withDatabase } from "../service-database.ts";
import type { Env, ServiceEntry } from "../services.ts";
import { statementTimeoutMs } from "./own-rules.ts";

/** Undefined unless orders is selected. */
export async function auditBrokerBooks(selected: readonly ServiceEntry[], env: Env): Promise<Audit | undefined> {
  const entry = selected.find(({ name }) => name === "orders");
  if (!entry) return undefined;
  // Imported here because it loads the whole service.
  const { auditBooks } = await import("@todoke/orders/audit-books");
  return withDatabase({ entry, env, purpose: "todoke audit", statementTimeoutMs }, ({ db }) => auditBooks(db, env));
}
