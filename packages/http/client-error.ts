/**
 * Answers what is not HTTP, or does not come in time: problem+json by hand, for there is no request to answer through.
 *
 * A connection may hold requests that were read in full and still wait. To write "400" now would tell the caller that one
 * of those was refused, when it may yet take effect. So they are answered first, and the connection closes after.
 */
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Problem } from "@todoke/kernel/problem";
import type { FastifyInstance } from "fastify";
import { answerHeaders } from "./answer-headers.ts";
import { bodyOf, problemType } from "./problem-handler.ts";
import { headersTooLarge, malformedHttp, requestTimeout } from "./problems.ts";
import { newRequestId } from "./request-id.ts";

export function answerClientError(this: FastifyInstance, error: Error & { code?: string }, socket: Socket): void {
  this.log.debug({ err: error }, "connection given up");
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  this.connections.afterAnswers(socket, () => {
    if (socket.writable) socket.write(bareAnswer(problemOf(error)));
    socket.destroySoon();
  });
}

function problemOf({ code }: { code?: string }): Problem {
  switch (code) {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return requestTimeout("send the whole request sooner");
    case "HPE_HEADER_OVERFLOW":
      return headersTooLarge("send fewer or shorter headers");
    default:
      return malformedHttp("send a well-formed HTTP/1.1 request");
  }
}

function bareAnswer(problem: Problem): string {
  const requestId = newRequestId();
  const body = bodyOf(problem, requestId);
  const headers = {
    ...answerHeaders,
    "x-request-id": requestId,
    "content-type": problemType,
    "content-length": Buffer.byteLength(body),
    connection: "close",
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join("")}\r\n${body}`;
}
