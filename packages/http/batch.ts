/**
 * Many commands in one call. It saves round trips and promises nothing about the whole: each has its own key, takes effect
 * or not by itself, and is answered in its place.
 */
import type { Answer } from "@todoke/kernel/idempotency";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type TSchema, Type } from "typebox";
import { sendAnswer } from "./idempotency.ts";
import { ProblemView } from "./openapi.ts";
import { problemOfFailure } from "./problem-handler.ts";

/** The key of one command, where a header cannot say it. */
export const ItemKey = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: "^[\\x21-\\x7e]*$",
  description: "As in the header Idempotency-Key: visible ASCII.",
});

/** What the call is answered with; `View` is what a command that was carried out is. */
export const batchResults = <View extends TSchema>(View: View) =>
  Type.Object({
    results: Type.Array(
      Type.Object({
        status: Type.Integer({ description: "What the route for one command would have answered." }),
        body: Type.Union([View, ProblemView]),
        replayed: Type.Optional(
          Type.Literal(true, { description: "It had been carried out before; this is that answer." }),
        ),
      }),
    ),
  });

/** Waits for all of them, and tells what became of each. */
export async function sendBatch(
  request: FastifyRequest,
  reply: FastifyReply,
  commands: readonly Promise<Answer>[],
): Promise<FastifyReply> {
  const ends = await Promise.allSettled(commands);
  const results = ends.map((end) => (end.status === "fulfilled" ? told(end.value) : refused(end.reason, request)));
  const body = Buffer.from(`{"results":[${results.join(",")}]}`);
  return sendAnswer(reply, { status: 200, contentType: "application/json; charset=utf-8", body, replayed: false });
}

/** The stored bytes as they are. */
const told = ({ status, body, replayed }: Answer) =>
  `{"status":${status},"body":${body.toString()}${replayed ? ',"replayed":true' : ""}}`;

function refused(error: unknown, request: FastifyRequest): string {
  const problem = problemOfFailure(error);
  if (problem.status >= 500) request.log.error({ err: error, code: problem.code }, "failed");
  return JSON.stringify({ status: problem.status, body: { ...problem.toJSON(), instance: request.id } });
}
