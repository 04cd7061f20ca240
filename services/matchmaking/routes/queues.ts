/** The modes: which there are, how each stands, and the way in. */
import {
  type HttpApp,
  IdempotencyHeaders,
  idempotencyKey,
  ProblemView,
  problems,
  requires,
  sendAnswer,
} from "@todoke/http";
import { digestOf, type IdempotencyKey } from "@todoke/kernel/idempotency";
import type { Static } from "typebox";
import type { Deps } from "../deps.ts";
import type { Attributes } from "../tickets.ts";
import { playerOf } from "./request.ts";
import { JoinBody, JoinedView, OneQueue, QueueOfUser, QueueStatsView, QueuesView } from "./schemas.ts";

/** A ticket is kept whole by the queue, and written down whole when it ends. */
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
    {
      ...requires(authenticate, readers),
      schema: {
        operationId: "listQueues",
        summary: "The modes, and what each asks of a ticket",
        response: { 200: QueuesView },
      },
    },
    async () => ({ queues: await listQueues() }),
  );
}

function statsRoute(app: HttpApp, { authenticate, showQueueStats }: Deps): void {
  app.get(
    "/v1/matchmaking/queues/:mode/stats",
    {
      ...requires(authenticate, readers),
      schema: {
        operationId: "showQueueStats",
        summary: "Who waits, and how long it took others; at most a second old",
        params: OneQueue,
        response: { 200: QueueStatsView, 404: ProblemView },
      },
    },
    async ({ params: { mode } }) => showQueueStats(mode),
  );
}

function joinRoute(app: HttpApp, { authenticate, joinQueue }: Deps): void {
  app.post(
    "/v1/matchmaking/queues/:mode/tickets",
    {
      ...requires(authenticate, { user: "any" }),
      schema: {
        operationId: "joinQueue",
        summary: "Waits for a match; 200 with the open ticket where the caller waits already with the same wish",
        params: OneQueue,
        headers: IdempotencyHeaders,
        body: JoinBody,
        response: {
          200: JoinedView,
          201: JoinedView,
          403: ProblemView,
          404: ProblemView,
          409: ProblemView,
          422: ProblemView,
        },
      },
    },
    async (request, reply) => {
      const wish = wishOf(request.params.mode, request.body);
      const who = { userId: playerOf(request), setBy: "player" } as const;
      return sendAnswer(reply, await joinQueue({ key: keyOf(request, wish), ...who, ...wish }));
    },
  );
}

function joinForUserRoute(app: HttpApp, { authenticate, joinQueue }: Deps): void {
  app.post(
    "/v1/matchmaking/users/:user_id/queues/:mode/tickets",
    {
      ...requires(authenticate, { key: "matchmaking:write" }),
      schema: {
        operationId: "joinQueueForUser",
        summary: "Join a queue for a user, with the party size and attributes that the back-end knows",
        description:
          "The ticket belongs to the user, who shows, cancels and keeps it alive through the gateway. " +
          "Whether the user may play is for the back-end to know: accounts are not asked.",
        params: QueueOfUser,
        headers: IdempotencyHeaders,
        body: JoinBody,
        response: { 200: JoinedView, 201: JoinedView, 404: ProblemView, 409: ProblemView, 422: ProblemView },
      },
    },
    async (request, reply) => {
      const { mode, user_id: userId } = request.params;
      const wish = { userId, ...wishOf(mode, request.body) };
      return sendAnswer(reply, await joinQueue({ key: keyOf(request, wish), setBy: "backend", ...wish }));
    },
  );
}

function wishOf(mode: string, { party_size: partySize = 1, attributes = {} }: Static<typeof JoinBody>) {
  refuseTooLarge(attributes);
  return { mode, partySize, attributes };
}

type Request = Parameters<typeof idempotencyKey>[0];

/**
 * A key is kept where the ticket is, and so it is good for one mode. What was wished is what counts: a party of one is the
 * same said or unsaid.
 */
function keyOf(request: Request, wish: { readonly mode: string }): IdempotencyKey {
  const { scope, key } = idempotencyKey(request, request.caller);
  return { scope: `${scope} ${wish.mode}`, key, requestHash: digestOf(wish) };
}

function refuseTooLarge(attributes: Attributes): void {
  if (Buffer.byteLength(JSON.stringify(attributes)) <= attributesMaxBytes) return;
  const detail = `must not be longer than ${attributesMaxBytes} bytes in all`;
  throw problems.invalidRequest(`body.attributes ${detail}`, { fields: [{ field: "body.attributes", detail }] });
}
