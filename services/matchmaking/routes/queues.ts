/** Routes of the queues: list them, get their figures, join them. */
import { JoinBody } from "@todoke/contracts/api";
import { guarded, type HttpApp, IdempotencyHeaders, idempotencyKey, problems, sendResponse } from "@todoke/http";
import { digestJson, type IdempotencyKey } from "@todoke/kernel/idempotency";
import type { Static } from "typebox";
import type { Deps } from "../deps.ts";
import { attributesUnfit, partyTooLarge, setByBackend, ticketOpen, unknownMode } from "../problems.ts";
import type { Attributes } from "../queue/ticket.ts";
import { callingUser } from "./request.ts";
import { JoinedView, OneQueue, QueueOfUser, QueueStatsView, QueuesView } from "./schemas.ts";

/** A ticket is stored whole, in the queue and again when it ends. */
const attributesMaxBytes = 4_096;

const readers = { user: "any", key: "read" } as const;

export function queueRoutes(app: HttpApp, deps: Deps): void {
  listRoute(app, deps);
  statsRoute(app, deps);
  joinRoute(app, deps);
  joinForUserRoute(app, deps);
}

function listRoute(app: HttpApp, { authenticate, listQueues }: Deps): void {
  app.get(
    "/v1/matchmaking/queues",
    guarded(authenticate, readers, {
      operationId: "listQueues",
      summary: "List queues",
      tags: ["Queues"],
      description:
        "Returns the modes. Each mode lists its team sizes and the attributes that its rules require of a ticket.",
      response: { 200: QueuesView },
    }),
    async () => ({ queues: await listQueues() }),
  );
}

function statsRoute(app: HttpApp, { authenticate, getQueueStats }: Deps): void {
  app.get(
    "/v1/matchmaking/queues/:mode/stats",
    guarded(authenticate, readers, {
      operationId: "getQueueStats",
      summary: "Get the figures of a queue",
      tags: ["Queues"],
      description:
        "Returns the number of waiting tickets, and the time to match of the last hour. The figures are at most a second old.",
      params: OneQueue,
      refusals: [unknownMode],
      response: { 200: QueueStatsView },
    }),
    async ({ params: { mode } }) => getQueueStats(mode),
  );
}

function joinRoute(app: HttpApp, { authenticate, joinQueue }: Deps): void {
  app.post(
    "/v1/matchmaking/queues/:mode/tickets",
    guarded(
      authenticate,
      { user: "any" },
      {
        operationId: "joinQueue",
        summary: "Join a queue",
        tags: ["Tickets"],
        description:
          "Returns 201 with a new ticket, or 200 with the caller's open ticket if it has the same party size and attributes. " +
          "If it has others, the response is 409 `ticket-open`.",
        params: OneQueue,
        headers: IdempotencyHeaders,
        body: JoinBody,
        refusals: [attributesUnfit, partyTooLarge, setByBackend, ticketOpen, unknownMode],
        response: {
          200: JoinedView,
          201: JoinedView,
        },
      },
    ),
    async (request, reply) => {
      const wanted = parseBody(request.params.mode, request.body);
      const userId = callingUser(request);
      return sendResponse(reply, await joinQueue({ key: keyPerMode(request, wanted), userId, ...wanted }));
    },
  );
}

function joinForUserRoute(app: HttpApp, { authenticate, joinQueueForUser }: Deps): void {
  app.post(
    "/v1/matchmaking/users/:user_id/queues/:mode/tickets",
    guarded(
      authenticate,
      { key: "matchmaking:write" },
      {
        operationId: "joinQueueForUser",
        summary: "Join a queue for a user",
        tags: ["Tickets"],
        description:
          "The back-end sets party size and attributes. The ticket belongs to the user, who gets, cancels and keeps it alive " +
          "through the gateway. The back-end must know whether the user may play: the account is not checked.",
        params: QueueOfUser,
        headers: IdempotencyHeaders,
        body: JoinBody,
        refusals: [attributesUnfit, partyTooLarge, ticketOpen, unknownMode],
        response: { 200: JoinedView, 201: JoinedView },
      },
    ),
    async (request, reply) => {
      const { mode, user_id: userId } = request.params;
      const wanted = { userId, ...parseBody(mode, request.body) };
      return sendResponse(reply, await joinQueueForUser({ key: keyPerMode(request, wanted), ...wanted }));
    },
  );
}

function parseBody(mode: string, { party_size: partySize = 1, attributes = {} }: Static<typeof JoinBody>) {
  rejectTooLarge(attributes);
  return { mode, partySize, attributes };
}

type Request = Parameters<typeof idempotencyKey>[0];

/**
 * A key is stored with the data of its mode, so its scope includes the mode. The digest is of the values with defaults filled
 * in: `party_size: 1` and no `party_size` are the same request.
 */
function keyPerMode(request: Request, wanted: { readonly mode: string }): IdempotencyKey {
  const { scope, key } = idempotencyKey(request, request.caller);
  return { scope: `${scope} ${wanted.mode}`, key, requestHash: digestJson(wanted) };
}

function rejectTooLarge(attributes: Attributes): void {
  if (Buffer.byteLength(JSON.stringify(attributes)) <= attributesMaxBytes) return;
  throw problems.invalidField("body.attributes", `must not be longer than ${attributesMaxBytes} bytes in total`);
}
