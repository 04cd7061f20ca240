/** Holds: placed, then captured or released, or expired. */
import { named } from "@todoke/contracts/api";
import { guarded, type HttpApp, IdempotencyHeaders, requires, sendResponse, withDescription } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { captureTooLarge, holdEnded, holdNotFound, insufficientPoints, tooManyLots } from "../problems.ts";
import { selectHold } from "../store/holds.ts";
import { commandKey, optionalBody, parseAmount, readers, toOrigin, withAmounts, writers } from "./request.ts";
import { HoldChangeView, HoldView, Origin, PointAmount, SpendBody, Uuid } from "./schemas.ts";

export function holdRoutes(app: HttpApp, deps: Deps): void {
  placeRoute(app, deps);
  getRoute(app, deps);
  captureRoute(app, deps);
  releaseRoute(app, deps);
}

const ttlDefaultSeconds = 900;
const ttlMaxSeconds = 2_592_000;

const HoldBody = named("PlaceHoldRequest", {
  ...SpendBody.properties,
  ttl_seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: ttlMaxSeconds,
      description: `How long the points are held, at most 30 days. Default: ${ttlDefaultSeconds}.`,
    }),
  ),
});

function placeRoute(app: HttpApp, { authenticate, placeHold }: Deps): void {
  app.post(
    "/v1/points/holds",
    withAmounts(authenticate, {
      operationId: "placeHold",
      summary: "Place a hold",
      tags: ["Holds"],
      description:
        "Held points cannot be spent until the hold is captured or released. The hold expires after `ttl_seconds`, which " +
        "returns the points.",
      headers: IdempotencyHeaders,
      body: HoldBody,
      refusals: [insufficientPoints, tooManyLots],
      response: { 201: HoldChangeView },
    }),
    async (request, reply) => {
      const { user_id: userId, point_amount, ttl_seconds: ttlSeconds = ttlDefaultSeconds, ...origin } = request.body;
      const hold = { userId, amount: BigInt(point_amount), ttlSeconds, ...toOrigin(origin) };
      return sendResponse(reply, await placeHold(commandKey(request, "HOLD"), hold));
    },
  );
}

const HoldParams = Type.Object({ hold_id: Uuid });

function getRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/points/holds/:hold_id",
    guarded(authenticate, readers, {
      operationId: "getHold",
      summary: "Get a hold",
      tags: ["Holds"],
      description: "Returns a hold, with what was captured and released.",
      params: HoldParams,
      refusals: [holdNotFound],
      response: { 200: HoldView },
    }),
    async ({ params: { hold_id } }) => {
      const hold = await selectHold(db, hold_id);
      if (!hold) throw holdNotFound("No hold has this ID.");
      return hold;
    },
  );
}

const CaptureBody = named("CaptureHoldRequest", {
  point_amount: Type.Optional(withDescription(PointAmount, "Default: the whole hold.")),
  ...Origin,
});
const ReleaseBody = named("ReleaseHoldRequest", Origin);

const endResponses = { 200: HoldChangeView };

function captureRoute(app: HttpApp, { authenticate, captureHold }: Deps): void {
  app.post(
    "/v1/points/holds/:hold_id/capture",
    {
      ...optionalBody,
      ...withAmounts(authenticate, {
        operationId: "captureHold",
        summary: "Capture a hold",
        tags: ["Holds"],
        description: "Spends the held points, all or a part, and releases the rest.",
        headers: IdempotencyHeaders,
        params: HoldParams,
        body: CaptureBody,
        refusals: [captureTooLarge, holdEnded, holdNotFound],
        response: { ...endResponses },
      }),
    },
    async (request, reply) => {
      const { point_amount, ...origin } = request.body;
      const holdId = request.params.hold_id.toLowerCase();
      const capture = { holdId, amount: parseAmount(point_amount), ...toOrigin(origin) };
      return sendResponse(reply, await captureHold(commandKey(request, "CAPTURE"), capture));
    },
  );
}

function releaseRoute(app: HttpApp, { authenticate, releaseHold }: Deps): void {
  app.post(
    "/v1/points/holds/:hold_id/release",
    {
      ...requires(authenticate, writers),
      ...optionalBody,
      schema: {
        operationId: "releaseHold",
        summary: "Release a hold",
        tags: ["Holds"],
        description: "Returns all held points to the user.",
        headers: IdempotencyHeaders,
        params: HoldParams,
        body: ReleaseBody,
        refusals: [holdEnded, holdNotFound],
        response: endResponses,
      },
    },
    async (request, reply) => {
      const release = { holdId: request.params.hold_id.toLowerCase(), ...toOrigin(request.body) };
      return sendResponse(reply, await releaseHold(commandKey(request, "RELEASE"), release));
    },
  );
}
