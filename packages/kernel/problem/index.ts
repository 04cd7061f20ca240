/**
 * Expected refusals in one format (RFC 9457).
 *
 * A `Problem` is created from a catalogue entry that `problem()` declares. An HTTP handler sends `toJSON()`. A worker
 * dead-letters the job, because a retry would be refused for the same reason.
 */

export interface ProblemKind {
  /** Stable and machine-readable, kebab-case: "idempotency-conflict". Clients branch on it. */
  readonly code: string;
  readonly status: number;
  readonly title: string;
}

/** An error in one field of the request. */
export interface FieldError {
  /** "header.idempotency-key", "body.user_id", "query.limit". */
  readonly field: string;
  readonly detail: string;
}

export interface ProblemOptions {
  readonly fields?: readonly FieldError[];
  /** Sent as Retry-After: the request may succeed after this time. */
  readonly retryAfterSeconds?: number;
  /** For the log; never sent. */
  readonly cause?: unknown;
}

const typeBase = "https://todoke.dev/problems/";

/** An expected refusal. Its message is the `detail` for the caller. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly code: string;
  readonly status: number;
  readonly title: string;
  readonly fields: readonly FieldError[] | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(kind: ProblemKind, detail: string, options: ProblemOptions = {}) {
    super(detail, { cause: options.cause });
    this.code = kind.code;
    this.status = kind.status;
    this.title = kind.title;
    this.fields = options.fields;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }

  get type(): string {
    return typeBase + this.code;
  }

  /** The body of an `application/problem+json` response. */
  toJSON() {
    return {
      type: this.type,
      title: this.title,
      status: this.status,
      code: this.code,
      detail: this.message,
      ...(this.fields && { errors: this.fields }),
    };
  }
}

/** A catalogue entry. Call it to create the Problem: `throw skuUnknown("There is no product gold-pass.")`. */
export interface ProblemFactory {
  (detail: string, options?: ProblemOptions): Problem;
  readonly kind: ProblemKind;
}

/** Declares an entry of a problem catalogue. docs/errors.md lists all of them; a test compares the two. */
export function problem(status: number, code: string, title: string): ProblemFactory {
  const kind = { code, status, title };
  const make = (detail: string, options?: ProblemOptions) => new Problem(kind, detail, options);
  return Object.assign(make, { kind });
}
