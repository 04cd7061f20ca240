/**
 * The only place where an error becomes a response (RFC 9457).
 *
 * A Problem is sent as it is. Errors of the framework are translated. A commit with an unknown outcome, and a database that is
 * unavailable or too slow, are 503 with Retry-After. Anything else is a bug: a 500 without details for the caller, and the whole chain of causes
 * in the log.
 */
import { CommitUnknown, getSqlState, isUnavailable } from "@todoke/kernel/db";
import { Problem } from "@todoke/kernel/problem";
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { callerFields } from "./callers.ts";
import { perSecond } from "./per-second.ts";
import * as problems from "./problems.ts";
import { publishUndeclared } from "./refusals.ts";
import { problemOfValidation } from "./validation.ts";

export function sendProblems(app: FastifyInstance): void {
  app.decorate("refusalLog", openRefusalLog());
  app.setErrorHandler((error, request, reply) => {
    try {
      return sendProblem(error, request, reply);
    } catch (cause) {
      // Fastify's own last resort would show the error to the caller.
      return sendProblem(problems.internal(noDetails, { cause }), request, reply);
    }
  });
}

export function sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = toProblem(error, request);
  logProblem(problem, request);
  publishUndeclared(problem.code, request.routeOptions);
  // Fastify closes the connection after any body that it rejects, in case more of it comes. If the body is complete, that
  // would only cost the pipelined requests behind it their responses.
  if (request.raw.complete && !request.server.connections.closesAfter(reply.raw)) reply.removeHeader("connection");
  if (problem.retryAfterSeconds !== undefined) reply.header("retry-after", problem.retryAfterSeconds);
  if (problem.status === 401) reply.header("www-authenticate", "Bearer");
  return reply.code(problem.status).header("content-type", problemType).send(problemBody(problem, request.id));
}

export const problemType = "application/problem+json; charset=utf-8";

/** `instance` is the id of the request, which every log line has too. */
export function problemBody(problem: Problem, requestId: string): string {
  return JSON.stringify({ ...problem.toJSON(), instance: requestId });
}

function toProblem(error: unknown, request: FastifyRequest): Problem {
  if (error instanceof Problem) return error;
  if (!(error instanceof Error)) return problems.internal(noDetails, { cause: error });
  if ((error as FastifyError).validation) return problemOfValidation(request);
  // The caller has closed the connection during the body; only the log sees this.
  if (!request.raw.complete && request.raw.destroyed)
    return problems.malformedHttp("the body broke off", { cause: error });
  const rejected = rejectedByFramework(error as FastifyError);
  if (rejected) return rejected;
  return toProblemOrInternal(error);
}

/** The Problem of a failed command: for the whole response, and for one command of a batch. */
export function toProblemOrInternal(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const causes = error instanceof Error ? causesOf(error) : [];
  if (causes.some((cause) => cause instanceof CommitUnknown)) return outcomeUnknown(error);
  if (causes.some((cause) => getSqlState(cause) === statementTimeout))
    return problems.unavailable("the database took too long; retry, or ask for less", {
      cause: error,
      retryAfterSeconds: 1,
    });
  if (isUnavailable(error)) {
    return problems.unavailable("a part of the service is unavailable; retry", {
      cause: error,
      retryAfterSeconds: 1,
    });
  }
  return problems.internal(noDetails, { cause: error });
}

// It does not claim that nothing happened: the error may have come after the commit.
const noDetails = "This is an error on our side; it was logged. You can safely retry with the same Idempotency-Key.";

function outcomeUnknown(cause: unknown): Problem {
  return problems.outcomeUnknown(
    "it is unknown whether the request took effect; retry with the same Idempotency-Key to find out",
    { cause, retryAfterSeconds: 1 },
  );
}

/**
 * `statement_timeout`: the statement was rolled back. It is not among the errors of an unavailable database, for which workers wait
 * without counting an attempt: a job whose statement is always too slow has to become a dead letter.
 */
const statementTimeout = "57014";

const causesMax = 16;

function causesOf(error: Error): readonly unknown[] {
  const chain: unknown[] = [error];
  for (let at: unknown = error.cause; at instanceof Error && chain.length < causesMax; at = at.cause) chain.push(at);
  return chain;
}

/** Errors of Fastify and its plugins, by their codes. */
function rejectedByFramework(error: FastifyError): Problem | undefined {
  switch (error.code) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return problems.bodyTooLarge("send a smaller body", { cause: error });
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return problems.unsupportedMediaType("send the body as application/json in UTF-8", { cause: error });
    case "FST_ERR_CTP_INVALID_CONTENT_LENGTH":
      return problems.malformedHttp("the body is not as long as its Content-Length says", { cause: error });
    case "FST_ERR_BAD_URL":
      return problems.malformedUrl("the path is not percent-encoded UTF-8", { cause: error });
    case "FST_ERR_MAX_PARAM_LENGTH":
      return problems.malformedUrl("a part of the path is too long", { cause: error });
    case "FST_ERR_HANDLER_TIMEOUT":
      return outcomeUnknown(error);
  }
  const { code = "", statusCode = 500 } = error;
  const isRejection = code.startsWith("FST_") && statusCode >= 400 && statusCode < 500;
  return isRejection ? problems.badRequest("the request cannot be accepted", { cause: error }) : undefined;
}

/** Throws before the body is read. */
export function rejectUnknownRoute(app: FastifyInstance, request: FastifyRequest, reply: FastifyReply): void {
  if (!request.is404) return;
  const path = request.raw.url?.split("?", 1)[0] ?? "/";
  const methods = app.supportedMethods.filter((method) => app.findRoute({ method, url: path }));
  if (methods.length === 0) throw problems.notFound("there is nothing at this path");
  reply.header("allow", methods.join(", "));
  throw problems.methodNotAllowed(`${request.method} is not possible here; ${methods.join(", ")} is`);
}

/** A rejection is one line; a failure has its causes too. */
function logProblem(problem: Problem, request: FastifyRequest): void {
  const line = { req: request, status: problem.status, code: problem.code, ...callerFields(request) };
  const because = problem.cause !== undefined && { err: problem.cause };
  if (problem.status >= 500) request.log.error({ ...line, ...because }, "failed");
  else request.server.refusalLog[problem.status === 429 ? "limited" : "refused"]({ request, line });
}

interface Refusal {
  readonly request: FastifyRequest;
  readonly line: object;
}

/** Lines about rejections, limited: beyond the limit one line per second has the number of requests (`count`). */
interface RefusalLog {
  refused(refusal: Refusal): void;
  /** 429: they come by the thousand, and are all alike. */
  limited(refusal: Refusal): void;
}

const refusedLinesMax = 100;

function openRefusalLog(): RefusalLog {
  const write = ({ request, line }: Refusal, count: number) =>
    request.log.info(count > 1 ? { ...line, count } : line, "refused");
  return { refused: perSecond({ max: refusedLinesMax, write }), limited: perSecond({ max: 1, write }) };
}

declare module "fastify" {
  interface FastifyInstance {
    readonly refusalLog: RefusalLog;
  }
}
