/** The headers of every response. Few, because each costs time on every response; pages add their own (page-headers.ts). */
import type { FastifyReply, FastifyRequest } from "fastify";

export const responseHeaders = {
  "cache-control": "no-store", // A response is for one caller at one moment.
  "x-content-type-options": "nosniff",
} as const;

export function setResponseHeaders(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  reply.header("cache-control", responseHeaders["cache-control"]);
  reply.header("x-content-type-options", responseHeaders["x-content-type-options"]);
  return reply.header("x-request-id", request.id);
}
