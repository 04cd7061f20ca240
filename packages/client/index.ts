/** The public API of the client. The login of programs and webhooks have entry points of their own. */
export { Call, PagedCall } from "./call.ts";
export {
  createClient,
  type GatewayOptions,
  logInUrl,
  type PlayerClient,
  type ServiceName,
  type ServicesClient,
  type ServicesOptions,
} from "./client.ts";
export { isProblem, NoAnswer, OutcomeUnknown, Problem, type ProblemFields } from "./errors.ts";
export type { Answer } from "./execute.ts";
export type { FollowOptions, StreamItem, StreamState } from "./follow.ts";
export type { ProblemCode } from "./gen/problem-codes.ts";
export type * from "./gen/schemas.ts";
export { type Joined, TicketEnded } from "./matchmaking.ts";
export type { CallOptions, CommandOptions, ConditionalOptions, Fetch, SharedOptions } from "./options.ts";
