/** Bodies of what staff does to users and orders; services and gateway share them. */
import { Type } from "typebox";
import { named, oneOf } from "./named.ts";
import { RequestTime } from "./request-time.ts";

const Reason = Type.String({
  minLength: 1,
  maxLength: 500,
  description: "Why; recorded in the audit log.",
  examples: ["the shop did not deliver"],
});
const Undoes = Type.Optional(
  Type.String({ pattern: "^[1-9][0-9]{0,17}$", description: "The `act_id` of the act that this one undoes." }),
);
const StockKeepingUnit = Type.String({
  minLength: 1,
  maxLength: 128,
  description: "The product.",
  examples: ["item1"],
});

export const StaffRevokeBody = named("StaffRevokeRequest", {
  stock_keeping_unit: StockKeepingUnit,
  reason: Reason,
  undoes: Undoes,
});

export const StaffGrantBody = named("StaffGrantRequest", {
  ...StaffRevokeBody.properties,
  expires_at: Type.Optional(
    RequestTime({
      description: "When the grant expires. Without it the grant does not expire.",
      examples: ["2999-01-31T09:30:00Z"],
    }),
  ),
});

export const AdjustPointsBody = named("AdjustPointsRequest", {
  direction: oneOf(["add", "spend"]),
  point_amount: Type.Unsafe<string>({
    title: "AdjustedAmount",
    type: ["integer", "string"],
    format: "int64",
    minimum: 1,
    pattern: "^[1-9]\\d{0,18}$",
    description: "Points, as a JSON integer or as a string of digits. Send amounts above 2^53 as a string.",
    examples: [100],
  }),
  expires_at: Type.Optional(
    RequestTime({ description: "When added points expire. Default: never.", examples: ["2999-01-31T09:30:00Z"] }),
  ),
  reason: Reason,
  undoes: Undoes,
});

export const ResolveOrderBody = named("ResolveOrderRequest", {
  as: oneOf(["taken", "not-taken"], {
    description: "taken: the broker has the order, and it is not sent again. not-taken: it is sent again.",
  }),
  broker_order_id: Type.Optional(
    Type.String({ pattern: "^[!-~]{1,128}$", description: "The broker's ID of a taken order, if it is known." }),
  ),
  reason: Reason,
});

export const TradingStateBody = named("SetTradingStateRequest", {
  mode: oneOf(["active", "halt", "cancel-only"], {
    title: "TradingMode",
    description: "halt: nothing is sent to the broker. cancel-only: only cancels are.",
  }),
  reason: Type.String({ minLength: 1, maxLength: 500, description: "Why, for the audit and other callers." }),
});
