/** Explains an id to staff: asks the services about it, and puts what they know into one sentence and one timeline. */
import { type HttpApp, requires } from "@todoke/http";
import { explainId, type FoundEntries, formatLinks, WhyParams, type WhySource, WhyView } from "@todoke/service/why";
import type { FastifyRequest } from "fastify";
import type { Deps } from "../deps.ts";
import { sessionUser } from "../guard/session-user.ts";
import { type UpstreamName, upstreamProblems } from "../problems.ts";
import type { Upstream } from "../upstreams/index.ts";
import { sendJson } from "./forward.ts";

type WhyDeps = Pick<Deps, "authenticate" | "findEntries" | "profileTimeoutMs" | "upstreams">;

const upstreamNames = Object.keys(upstreamProblems) as UpstreamName[];

export function whyRoute(app: HttpApp, { authenticate, findEntries, profileTimeoutMs, upstreams }: WhyDeps): void {
  /** The gateway's own database. */
  const own: WhySource = {
    service: "gateway-bff",
    async find(question) {
      const found: FoundEntries[] = [];
      for (const each of "links" in question ? question.links : [question]) found.push(await findEntries(each));
      return { entries: found.flatMap(({ entries }) => entries), failed: found.flatMap(({ failed }) => failed) };
    },
  };

  app.get(
    "/v1/admin/why/:id",
    {
      ...requires(authenticate, { staff: "VIEWER" }),
      schema: {
        operationId: "explainId",
        summary: "Explain an id",
        tags: ["Operations"],
        description:
          "Returns what happened to an id, or what is in the way now: one sentence with its cure, and a timeline over all " +
          "services. Related ids are followed. A service that does not answer is marked, and the others are shown.",
        params: WhyParams,
        response: { 200: WhyView },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const deployed = upstreamNames.flatMap((service) => {
        const upstream = upstreams[service];
        return upstream ? [remote(service, upstream, { request, timeoutMs: profileTimeoutMs })] : [];
      });
      const absent = upstreamNames.filter((service) => !upstreams[service]);
      return sendJson(reply, JSON.stringify(await explainId(id, [own, ...deployed], absent)));
    },
  );
}

interface CallOptions {
  readonly request: FastifyRequest;
  /** For each of its calls. */
  readonly timeoutMs: number;
}

function remote(service: UpstreamName, upstream: Upstream, { request, timeoutMs }: CallOptions): WhySource {
  return {
    service,
    async find(question) {
      const path =
        "links" in question
          ? `/v1/admin/why/-?links=${encodeURIComponent(formatLinks(question.links))}`
          : `/v1/admin/why/${encodeURIComponent(question.id)}`;
      const user = sessionUser(request);
      const { value } = await upstream.call({ method: "GET", path, user, requestId: request.id, timeoutMs });
      return value as FoundEntries;
    },
  };
}
