/** Points set aside for something that is not certain yet: held, then captured or released, or given back when its time is up. */
import { type HttpApp, IdempotencyHeaders, ProblemView, requires, sendAnswer } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { holdNotFound } from "../problems.ts";
import { selectHold } from "../store/holds.ts";
import { aboutOf, amountOf } from "./changes.ts";
import { bodyMayBeLeftOut, commandKey, readers, takesAmounts, writers } from "./request.ts";
import { About, HoldChangeView, HoldView, PointAmount, SpendBody, Uuid } from "./schemas.ts";

export function holdRoutes(app: HttpApp, deps: Deps): void {
  holdRoute(app, deps);
  showRoute(app, deps);
  captureRoute(app, deps);
  releaseRoute(app, deps);
}

const ttlUsualSeconds = 900;
const ttlMaxSeconds = 2_592_000;

const HoldBody = Type.Object({
  ...SpendBody.properties,
  ttl_seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: ttlMaxSeconds,
      description: `How long they are held at the most; ${ttlUsualSeconds} if not given, up to 30 days.`,
    }),
  ),
});

function holdRoute(app: HttpApp, { authenticate, changePoints }: Deps): void {
  app.post(
    "/v1/points/holds",
    {
      ...takesAmounts(requires(authenticate, writers)),
      schema: {
        operationId: "holdPoints",
        summary: "Sets points aside, so that nobody else can spend them",
        headers: IdempotencyHeaders,
        body: HoldBody,
        response: { 201: HoldChangeView, 409: ProblemView },
      },
    },
    async (request, reply) => {
      const { user_id: userId, point_amount, ttl_seconds: ttlSeconds = ttlUsualSeconds, ...about } = request.body;
      const change = { kind: "HOLD", userId, amount: BigInt(point_amount), ttlSeconds, ...aboutOf(about) } as const;
      return sendAnswer(reply, await changePoints(commandKey(request, "HOLD"), change));
    },
  );
}

const OneHold = Type.Object({ hold_id: Uuid });

function showRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/points/holds/:hold_id",
    {
      ...requires(authenticate, readers),
      schema: {
        operationId: "showHold",
        summary: "A hold, and how it ended",
        params: OneHold,
        response: { 200: HoldView, 404: ProblemView },
      },
    },
    async ({ params: { hold_id } }) => {
      const found = await selectHold(db, hold_id);
      if (!found) throw holdNotFound("no hold has this id");
      return found;
    },
  );
}

const ended = { 200: HoldChangeView, 404: ProblemView, 409: ProblemView };

function captureRoute(app: HttpApp, { authenticate, changePoints }: Deps): void {
  app.post(
    "/v1/points/holds/:hold_id/capture",
    {
      ...takesAmounts(requires(authenticate, writers)),
      ...bodyMayBeLeftOut,
      schema: {
        operationId: "captureHold",
        summary: "Spends what is held, all or a part; the rest is released",
        headers: IdempotencyHeaders,
        params: OneHold,
        body: Type.Object({
          point_amount: Type.Optional({ ...PointAmount, description: "All that is held, if not given." }),
          ...About,
        }),
        response: { ...ended, 422: ProblemView },
      },
    },
    async (request, reply) => {
      const { point_amount, ...about } = request.body;
      const holdId = request.params.hold_id.toLowerCase();
      const change = { kind: "CAPTURE", holdId, amount: amountOf(point_amount), ...aboutOf(about) } as const;
      return sendAnswer(reply, await changePoints(commandKey(request, "CAPTURE"), change));
    },
  );
}

function releaseRoute(app: HttpApp, { authenticate, changePoints }: Deps): void {
  app.post(
    "/v1/points/holds/:hold_id/release",
    {
      ...requires(authenticate, writers),
      ...bodyMayBeLeftOut,
      schema: {
        operationId: "releaseHold",
        summary: "Gives back what is held",
        headers: IdempotencyHeaders,
        params: OneHold,
        body: Type.Object(About),
        response: ended,
      },
    },
    async (request, reply) => {
      const change = {
        kind: "RELEASE",
        holdId: request.params.hold_id.toLowerCase(),
        ...aboutOf(request.body),
      } as const;
      return sendAnswer(reply, await changePoints(commandKey(request, "RELEASE"), change));
    },
  );
}
