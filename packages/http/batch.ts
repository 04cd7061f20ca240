/**
 * Many commands in one request. It saves round trips and is not atomic: each command has its own key, takes effect or not
 * independently, and has its result at the same index.
 */
import type { CommandResponse } from "@todoke/kernel/idempotency";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type TSchema, Type } from "typebox";
import { sendResponse } from "./idempotency.ts";
import { ProblemView } from "./openapi.ts";
import { toProblemOrInternal } from "./problem-handler.ts";

/** The key of one command in a batch, where a header cannot carry it. */
export const ItemKey = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: "^[\\x21-\\x7e]*$",
  description: "As in the Idempotency-Key header: visible ASCII characters.",
});

/** The response of the batch; `View` is the body of a successful command, and `title` the name of a result. */
export const batchResults = <View extends TSchema>(View: View, title: string) =>
  Type.Object(
    {
      results: Type.Array(
        Type.Object(
          {
            status: Type.Integer({
              description: "The status that the route for one command returns.",
              examples: [200],
            }),
            body: Type.Union([View, ProblemView]),
            replayed: Type.Optional(
              Type.Literal(true, { description: "The stored response of an earlier request with this key." }),
            ),
          },
          { title },
        ),
        { description: "A result for each item, at the same index." },
      ),
    },
    { title: `${title}s` },
  );

/** Waits for all commands and sends their results. */
export async function sendBatch(
  request: FastifyRequest,
  reply: FastifyReply,
  commands: readonly Promise<CommandResponse>[],
): Promise<FastifyReply> {
  const settled = await Promise.allSettled(commands);
  const results = settled.map((each) =>
    each.status === "fulfilled" ? resultOf(each.value) : rejectedResult(each.reason, request),
  );
  const body = Buffer.from(`{"results":[${results.join(",")}]}`);
  return sendResponse(reply, { status: 200, contentType: "application/json; charset=utf-8", body, replayed: false });
}

/** The stored bytes, unchanged. */
const resultOf = ({ status, body, replayed }: CommandResponse) =>
  `{"status":${status},"body":${body.toString()}${replayed ? ',"replayed":true' : ""}}`;

function rejectedResult(error: unknown, request: FastifyRequest): string {
  const problem = toProblemOrInternal(error);
  if (problem.status >= 500) request.log.error({ err: error, code: problem.code }, "failed");
  return JSON.stringify({ status: problem.status, body: { ...problem.toJSON(), instance: request.id } });
}
