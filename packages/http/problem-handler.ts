/**
 * The one place where an error becomes an answer (RFC 9457).
 *
 * A Problem is sent as it is. What the framework refuses is put in our words. A commit whose outcome is not known, and a
 * database that cannot be reached, are 503 with Retry-After. Anything else is a bug: a 500 that tells the caller nothing,
 * and the log its whole chain of causes.
 */
import { CommitUnknown, isUnavailable } from "@todoke/kernel/db";
import { Problem } from "@todoke/kernel/problem";
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { whoAsks } from "./callers.ts";
import { perSecond } from "./per-second.ts";
import * as problems from "./problems.ts";
import { problemOfValidation } from "./validation.ts";

export function answerWithProblems(app: FastifyInstance): void {
  app.decorate("refusalLog", openRefusalLog());
  app.setErrorHandler((error, request, reply) => {
    try {
      return answerWithProblem(error, request, reply);
    } catch (fault) {
      // Fastify's own last resort would tell the caller what went wrong in here.
      return answerWithProblem(problems.internal(nothingMore, { cause: fault }), request, reply);
    }
  });
}

export function answerWithProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = problemOf(error, request);
  tellTheLog(problem, request);
  // Fastify closes the connection after any body it could not take, in case more of it comes. When it has come in full,
  // that would only cost the requests behind it their answers.
  if (request.raw.complete && !request.server.connections.closesAfter(reply.raw)) reply.removeHeader("connection");
  if (problem.retryAfterSeconds !== undefined) reply.header("retry-after", problem.retryAfterSeconds);
  if (problem.status === 401) reply.header("www-authenticate", "Bearer");
  return reply.code(problem.status).header("content-type", problemType).send(bodyOf(problem, request.id));
}

export const problemType = "application/problem+json; charset=utf-8";

/** The `instance` is the id of the request: the caller quotes it, and the log has it in every line. */
export function bodyOf(problem: Problem, requestId: string): string {
  return JSON.stringify({ ...problem.toJSON(), instance: requestId });
}

function problemOf(error: unknown, request: FastifyRequest): Problem {
  if (error instanceof Problem) return error;
  if (!(error instanceof Error)) return problems.internal(nothingMore, { cause: error });
  if ((error as FastifyError).validation) return problemOfValidation(request);
  // Whoever called has hung up in the middle of the body; nobody hears this but the log.
  if (!request.raw.complete && request.raw.destroyed)
    return problems.malformedHttp("the body broke off", { cause: error });
  const refused = refusedByFramework(error as FastifyError);
  if (refused) return refused;
  return problemOfFailure(error);
}

/**
 * What went wrong while a command was carried out, whatever it came with: for the whole answer, and for one command among
 * many.
 */
export function problemOfFailure(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof Error && causesOf(error).some((cause) => cause instanceof CommitUnknown))
    return outcomeUnknown(error);
  if (isUnavailable(error)) {
    return problems.unavailable("a part of the service cannot be reached; try again", {
      cause: error,
      retryAfterSeconds: 1,
    });
  }
  return problems.internal(nothingMore, { cause: error });
}

// It does not say that nothing happened: the fault may have come after the commit.
const nothingMore = "the fault is on our side and has been noted; a try with the same Idempotency-Key does no harm";

function outcomeUnknown(cause: unknown): Problem {
  return problems.outcomeUnknown(
    "the request may have taken effect or not; send it again with the same Idempotency-Key to learn which",
    { cause, retryAfterSeconds: 1 },
  );
}

const causesMax = 16;

function causesOf(error: Error): readonly unknown[] {
  const chain: unknown[] = [error];
  for (let at: unknown = error.cause; at instanceof Error && chain.length < causesMax; at = at.cause) chain.push(at);
  return chain;
}

/** What Fastify and its plugins refuse by themselves, by their codes. */
function refusedByFramework(error: FastifyError): Problem | undefined {
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
  const isRefusal = code.startsWith("FST_") && statusCode >= 400 && statusCode < 500;
  return isRefusal ? problems.badRequest("the request cannot be accepted as it is", { cause: error }) : undefined;
}

/** Throws before anything of the body is read. */
export function refuseUnknownRoute(app: FastifyInstance, request: FastifyRequest, reply: FastifyReply): void {
  if (!request.is404) return;
  const path = request.raw.url?.split("?", 1)[0] ?? "/";
  const methods = app.supportedMethods.filter((method) => app.findRoute({ method, url: path }));
  if (methods.length === 0) throw problems.notFound("there is nothing at this path");
  reply.header("allow", methods.join(", "));
  throw problems.methodNotAllowed(`${request.method} is not possible here; ${methods.join(", ")} is`);
}

/** A refusal is worth a line; a failure is worth its causes. */
function tellTheLog(problem: Problem, request: FastifyRequest): void {
  const line = { req: request, status: problem.status, code: problem.code, ...whoAsks(request) };
  const because = problem.cause !== undefined && { err: problem.cause };
  if (problem.status >= 500) request.log.error({ ...line, ...because }, "failed");
  else request.server.refusalLog[problem.status === 429 ? "limited" : "refused"]({ request, line });
}

interface Refusal {
  readonly request: FastifyRequest;
  readonly line: object;
}

/** Lines about refusals, bounded: past the bound one line a second says how many it stands for (`count`). */
interface RefusalLog {
  refused(refusal: Refusal): void;
  /** 429: they come by the thousand, and each says the same. */
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
