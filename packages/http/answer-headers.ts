/** What every answer carries. Few headers, for each costs every answer; what a page needs more is for who sends pages. */
import type { FastifyReply, FastifyRequest } from "fastify";

export const answerHeaders = {
  "cache-control": "no-store", // An answer is about one caller at one moment.
  "x-content-type-options": "nosniff",
} as const;

export function setAnswerHeaders(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  reply.header("cache-control", answerHeaders["cache-control"]);
  reply.header("x-content-type-options", answerHeaders["x-content-type-options"]);
  return reply.header("x-request-id", request.id);
}
