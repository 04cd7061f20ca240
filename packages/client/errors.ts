/** The errors of a call. */
import type { ProblemCode } from "./gen/problem-codes.ts";

/** The fields of an `application/problem+json` response (RFC 9457). */
export interface ProblemFields {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  /** The fields that were rejected. */
  readonly errors?: readonly { readonly field: string; readonly detail: string }[];
  /** The id of the request. Quote it when you report a failure. */
  readonly instance?: string | undefined;
}

/** The server refused the request, and nothing happened. Branch on `code`. */
export class Problem extends Error implements ProblemFields {
  override readonly name = "Problem";
  readonly status: number;
  /** A newer server can have codes that this client does not know. */
  readonly code: ProblemCode | (string & {});
  readonly title: string;
  readonly detail: string;
  readonly errors: readonly { readonly field: string; readonly detail: string }[];
  readonly instance: string | undefined;
  /** The server's Retry-After. */
  readonly retryAfterMs: number | undefined;

  constructor(fields: ProblemFields, retryAfterMs?: number) {
    super(`${fields.status} ${fields.code}: ${fields.detail}`);
    this.status = fields.status;
    this.code = fields.code;
    this.title = fields.title;
    this.detail = fields.detail;
    this.errors = fields.errors ?? [];
    this.instance = fields.instance;
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * It is unknown whether the command took effect. Call again with the same key to find out: the answer is the stored result, or
 * the command runs now.
 */
export class OutcomeUnknown extends Error {
  override readonly name = "OutcomeUnknown";
  /** The idempotency key of the command; undefined if the operation has none. */
  readonly key: string | undefined;
  readonly attempts: number;

  constructor(
    operation: string,
    { key, attempts, cause }: { key: string | undefined; attempts: number; cause: unknown },
  ) {
    const advice = key === undefined ? "Read the state to find out." : `Call again with the key ${key} to find out.`;
    super(`It is unknown whether ${operation} took effect (attempts: ${attempts}). ${advice}`, { cause });
    this.key = key;
    this.attempts = attempts;
  }
}

/** A read that was not answered in time. It changed nothing. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";
  readonly attempts: number;

  constructor(operation: string, { attempts, cause }: { attempts: number; cause: unknown }) {
    super(`${operation} had no answer (attempts: ${attempts}).`, { cause });
    this.attempts = attempts;
  }
}

/** Whether the error is a Problem, with this code if one is given. */
export function isProblem<Code extends ProblemCode>(error: unknown, code: Code): error is Problem & { code: Code };
export function isProblem(error: unknown): error is Problem;
export function isProblem(error: unknown, code?: string): boolean {
  return error instanceof Problem && (code === undefined || error.code === code);
}
