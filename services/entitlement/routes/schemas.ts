/** The schemas of requests and responses; they are the contract (seed 000). */
import { named, oneOf } from "@todoke/contracts/api";
import { RequestTime } from "@todoke/http";
import { Type } from "typebox";

export const UserId = Type.String({ minLength: 1, maxLength: 128, examples: ["u_123"] });
export const StockKeepingUnit = Type.String({
  minLength: 1,
  maxLength: 128,
  description: "The product.",
  examples: ["item1"],
});

export const ChangeBody = named("RevokeEntitlementRequest", {
  user_id: UserId,
  stock_keeping_unit: StockKeepingUnit,
  reason: Type.String({
    minLength: 1,
    maxLength: 64,
    description: "Why; shown in the history.",
    examples: ["purchase", "refund"],
  }),
  purchase_id: Type.String({
    minLength: 1,
    maxLength: 128,
    description: "The purchase that caused the change; shown in the history.",
    examples: ["p_456"],
  }),
});

export const GrantBody = named("GrantEntitlementRequest", {
  ...ChangeBody.properties,
  expires_at: Type.Optional(
    RequestTime({
      description:
        "When the grant expires, to the millisecond. Must be in the future. Without it the grant does not expire.",
      examples: ["2027-01-31T09:30:00Z"],
    }),
  ),
});

export const EntitlementStatus = Type.Union(
  [
    Type.Literal("ACTIVE"),
    Type.Literal("REVOKED"),
    Type.Literal("EXPIRED", { description: "The end time of the grant has passed." }),
  ],
  { title: "EntitlementStatus" },
);

const version = Type.Integer({ format: "int64", minimum: 1, description: "Rises by one with every change." });
const time = Type.String({ format: "date-time" });

export const EntitlementView = named("Entitlement", {
  stock_keeping_unit: StockKeepingUnit,
  status: EntitlementStatus,
  version,
  updated_at: time,
  expires_at: Type.Optional(Type.String({ format: "date-time", description: "Missing if the grant does not expire." })),
});

export const UserEntitlementView = named("UserEntitlement", { user_id: UserId, ...EntitlementView.properties });

export const HistoryView = named("EntitlementChange", {
  version,
  action: oneOf(["GRANT", "REVOKE", "EXPIRE"]),
  source: Type.String({ description: "The `reason` of the request." }),
  source_id: Type.String({ description: "The `purchase_id` of the request." }),
  caller: Type.String({ description: "The holder of the API key, or `todoke:expiry`." }),
  event_id: Type.String({ format: "uuid", description: "The event that reported the change." }),
  created_at: time,
});
