/** Calls all services at once for a member of staff. Returns their responses, and the services that failed. */
import { Problem } from "@todoke/kernel/problem";
import type { FastifyRequest } from "fastify";
import type { Deps } from "../deps.ts";
import { sessionUser } from "../guard/session-user.ts";
import type { UpstreamName } from "../problems.ts";
import type { Upstream } from "../upstreams/index.ts";

interface Answer {
  readonly service: string;
  readonly value: unknown;
}

interface FailedService {
  readonly service: string;
  readonly detail: string;
  readonly error: unknown;
}

export interface Answers {
  readonly answers: readonly Answer[];
  readonly failed: readonly FailedService[];
}

export interface Question {
  /** The services to ask, of those that are deployed; by default all. */
  readonly services?: readonly string[];
  readonly path: (service: UpstreamName) => string;
  /** The gateway's own answer. */
  readonly own?: () => Promise<unknown>;
}

/** The name of the gateway among the services. */
export const ownName = "gateway-bff";

/** The services that are deployed here, besides the gateway. */
export const deployedServices = (upstreams: Deps["upstreams"]): readonly (readonly [UpstreamName, Upstream])[] =>
  Object.entries(upstreams).flatMap(([name, upstream]) =>
    upstream && typeof upstream === "object" ? [[name as UpstreamName, upstream as Upstream] as const] : [],
  );

export async function askServices(
  { upstreams }: Pick<Deps, "upstreams">,
  request: FastifyRequest,
  { services, path, own }: Question,
): Promise<Answers> {
  const isAsked = (name: string) => services?.includes(name) ?? true;
  const user = sessionUser(request);
  const asked: Asked[] = deployedServices(upstreams)
    .filter(([name]) => isAsked(name))
    .map(([name, upstream]) => {
      const call = { method: "GET", path: path(name), user, requestId: request.id } as const;
      return [name, async () => (await upstream.call(call)).value];
    });
  if (own && isAsked(ownName)) asked.push([ownName, own]);
  return answersOf(asked);
}

type Asked = readonly [service: string, ask: () => Promise<unknown>];

export async function answersOf(asked: readonly Asked[]): Promise<Answers> {
  const results = await Promise.all(asked.map(([service, ask]) => answerOf(service, ask)));
  return {
    answers: results.filter((result) => "value" in result),
    failed: results.filter((result) => "detail" in result),
  };
}

async function answerOf(service: string, ask: () => Promise<unknown>): Promise<Answer | FailedService> {
  try {
    return { service, value: await ask() };
  } catch (error) {
    return { service, detail: error instanceof Problem ? error.message : "it failed", error };
  }
}
