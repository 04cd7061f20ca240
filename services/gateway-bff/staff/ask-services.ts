/** Calls all services at once for a member of staff. Returns their responses, and the services that failed. */
import { Problem } from "@todoke/kernel/problem";
import type { FastifyRequest } from "fastify";
import type { Deps } from "../deps.ts";
import { sessionUser } from "../guard/session-user.ts";
import type { UpstreamName } from "../problems.ts";

interface Answer {
  readonly service: string;
  readonly value: unknown;
}

interface FailedService {
  readonly service: string;
  readonly detail: string;
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

export async function askServices(
  { upstreams }: Pick<Deps, "upstreams">,
  request: FastifyRequest,
  { services, path, own }: Question,
): Promise<Answers> {
  const isAsked = (name: string) => services?.includes(name) ?? true;
  const user = sessionUser(request);
  const asked = Object.entries(upstreams).flatMap(([name, upstream]) => {
    if (!upstream || !isAsked(name) || typeof upstream === "function") return [];
    const call = { method: "GET", path: path(name as UpstreamName), user, requestId: request.id } as const;
    return [[name, async () => (await upstream.call(call)).value] as const];
  });
  if (own && isAsked(ownName)) asked.push([ownName, own]);
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
    return { service, detail: error instanceof Problem ? error.message : "it failed" };
  }
}
