/** A back-end puts a user into a queue. It may set everything that the mode's rules use. */
import type { Answer } from "@todoke/kernel/idempotency";
import { enqueue, type JoinDeps, type JoinRequest } from "./join-queue.ts";

export function joinQueueForUser(deps: JoinDeps) {
  return (request: JoinRequest): Promise<Answer> => enqueue(deps, request);
}
