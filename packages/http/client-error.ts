/**
 * Responds to input that is not HTTP, or comes too slowly, with problem+json written by hand: there is no request to reply to.
 *
 * A connection may have complete requests that still wait for their response. A 400 written now would look like the response to
 * one of them, which may yet take effect. They get their responses first; then the connection closes.
 */
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Problem } from "@todoke/kernel/problem";
import type { FastifyInstance } from "fastify";
import { problemBody, problemType } from "./problem-handler.ts";
import { headersTooLarge, malformedHttp, requestTimeout } from "./problems.ts";
import { newRequestId } from "./request-id.ts";
import { responseHeaders } from "./response-headers.ts";

export function respondToClientError(this: FastifyInstance, error: Error & { code?: string }, socket: Socket): void {
  this.log.debug({ err: error }, "connection closed after a client error");
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  this.connections.afterResponses(socket, () => {
    if (socket.writable) socket.write(rawResponse(toProblem(error)));
    socket.destroySoon();
  });
}

function toProblem({ code }: { code?: string }): Problem {
  switch (code) {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return requestTimeout("send the whole request sooner");
    case "HPE_HEADER_OVERFLOW":
      return headersTooLarge("send fewer or shorter headers");
    default:
      return malformedHttp("send a well-formed HTTP/1.1 request");
  }
}

function rawResponse(problem: Problem): string {
  const requestId = newRequestId();
  const body = problemBody(problem, requestId);
  const headers = {
    ...responseHeaders,
    "x-request-id": requestId,
    "content-type": problemType,
    "content-length": Buffer.byteLength(body),
    connection: "close",
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join("")}\r\n${body}`;
}
