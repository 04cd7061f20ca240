/**
 * The problems that an operation can return. A route names its own in `schema.refusals`; those that follow from its kind (it
 * has a body, an idempotency key, an access rule) are added here. The API document lists them, and a client gets a union.
 *
 * A refusal that a route does not name is published on a diagnostics channel, where the tests of all services listen.
 */
import diagnostics from "node:diagnostics_channel";
import { overloaded } from "@todoke/kernel/batcher";
import { idempotencyConflict, idempotencyInProgress } from "@todoke/kernel/idempotency";
import type { ProblemFactory, ProblemKind } from "@todoke/kernel/problem";
import type { FastifyContextConfig, FastifySchema } from "fastify";
import * as problems from "./problems.ts";

declare module "fastify" {
  interface FastifySchema {
    /** The problems of this operation, besides those of every route like it. */
    readonly refusals?: readonly ProblemFactory[];
    /** It also returns the refusals of the operations that it calls at other services. */
    readonly passesOnRefusals?: boolean;
    /** Headers of successful responses, by their names in `headerTexts`. */
    readonly responseHeaders?: readonly HeaderName[];
  }
}

export const headerTexts = {
  etag: { description: "The version of the object, for `If-Match`.", schema: { type: "string", examples: ['"3"'] } },
  "idempotency-replayed": {
    description: "`true` if this is the stored response of an earlier request with the same key.",
    schema: { type: "string", const: "true" },
  },
  ratelimit: {
    description: "What is left of the limit, and the seconds until it is whole again.",
    schema: { type: "string", examples: ['"read";r=599;t=60'] },
  },
  "ratelimit-policy": {
    description: "The limit: requests, and the seconds in which they count.",
    schema: { type: "string", examples: ['"read";q=600;w=60'] },
  },
} as const;

export type HeaderName = keyof typeof headerTexts;

interface DescribedRoute {
  readonly schema?: FastifySchema | undefined;
  readonly config?: Partial<Pick<FastifyContextConfig, "rule">> | undefined;
}

export function refusalsOf({ schema = {}, config }: DescribedRoute): ProblemKind[] {
  const { body, refusals = [] } = schema;
  const key = keyIn(schema);
  const isGuarded = config?.rule && !config.rule.isPublic;
  const all = [
    ...refusals,
    problems.invalidRequest,
    ...(body ? [problems.malformedJson, problems.bodyTooLarge, problems.unsupportedMediaType] : []),
    ...(key === "required" ? [problems.idempotencyKeyMissing] : []),
    ...(key ? [problems.idempotencyKeyInvalid, idempotencyConflict, idempotencyInProgress] : []),
    ...(isGuarded ? [problems.unauthenticated, problems.forbidden] : []),
    ...(config?.rule?.key ? [problems.rateLimited] : []),
    ...(key ? [problems.outcomeUnknown, overloaded] : []),
    problems.unavailable,
  ];
  return [...new Map(all.map(({ kind }) => [kind.code, kind])).values()];
}

/** Whether the schema has an idempotency key. */
export function keyIn(schema: FastifySchema): "required" | "optional" | undefined {
  const headers = schema.headers as
    | { readonly properties?: Readonly<Record<string, unknown>>; readonly required?: readonly string[] }
    | undefined;
  if (!headers?.properties?.["idempotency-key"]) return undefined;
  return headers.required?.includes("idempotency-key") ? "required" : "optional";
}

/** Refusals before a route is reached, and errors on our side: any route can return them. */
const ofEveryRoute: ReadonlySet<string> = new Set(
  [
    problems.badRequest,
    problems.bodyTooLarge,
    problems.headersTooLarge,
    problems.internal,
    problems.malformedHttp,
    problems.malformedUrl,
    problems.outcomeUnknown,
    problems.requestTimeout,
    problems.tooManyInFlight,
    problems.unknownHost,
    problems.unsupportedMediaType,
    overloaded,
  ].map(({ kind }) => kind.code),
);

/** Has subscribers in tests only. */
const undeclared = diagnostics.channel("todoke.http.undeclared-refusal");

export function publishUndeclared(code: string, route: DescribedRoute): void {
  if (!undeclared.hasSubscribers || !route.schema?.operationId || !route.config?.rule) return;
  if (route.schema.passesOnRefusals || ofEveryRoute.has(code)) return;
  if (refusalsOf(route).some((kind) => kind.code === code)) return;
  undeclared.publish(`${route.schema.operationId} refuses with ${code}, which is not in the refusals of its schema`);
}
