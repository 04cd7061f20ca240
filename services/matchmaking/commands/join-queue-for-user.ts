/** A back-end puts a user into a queue. It may set everything that the mode's rules use. */
import type { CommandResponse } from "@todoke/kernel/idempotency";
import { enqueue, type JoinDeps, type JoinRequest } from "./join-queue.ts";

export function joinQueueForUser(deps: JoinDeps) {
  return (request: JoinRequest): Promise<CommandResponse> => enqueue(deps, request);
}
