/** Schemas of requests and responses that a service and the gateway have in common. */
export {
  displayNamePattern,
  ReasonBody,
  Role,
  RoleBody,
  SuspendBody,
  UpdateUserBody,
  UserView,
} from "./account.ts";
export { type Example, exampleOf } from "./examples.ts";
export {
  type Attributes,
  type AttributeValue,
  JoinBody,
  Mode,
  modePattern,
  PartySize,
  SimulationQuery,
  TicketAttributes,
  TicketId,
  TicketLimit,
  ticketIdPattern,
} from "./matchmaking.ts";
export { named, oneOf, orNull } from "./named.ts";
export { RequestTime } from "./request-time.ts";
export { AdjustPointsBody, ResolveOrderBody, StaffGrantBody, StaffRevokeBody, TradingStateBody } from "./staff.ts";
