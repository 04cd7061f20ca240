/**
 * Makes a process work by claims where it would work in transactions, as on another bus: with CHAOS_CLAIMS_ONLY=true it stops
 * at failpoints between claim and settlement, beside processes that have no such point (docs/adr/0063).
 */
import type { Patch } from "./patch.ts";

export const claimsOnly: readonly Patch[] = [
  {
    file: "packages/service/buses.ts",
    find: "return others.length === 0 ? first?.bus.openPublisher?.(db) : undefined;",
    replace: "return undefined;",
  },
  {
    file: "packages/service/consumes.ts",
    find: "const { handle, inTransaction } = inbox;",
    replace: "const { handle } = inbox, inTransaction = undefined;",
  },
  {
    file: "services/notification/main.ts",
    find: "if (send.isLocal) sendNow = sendBatch(send);",
    replace: "",
  },
];
