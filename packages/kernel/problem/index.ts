/**
 * An expected refusal, told the same way everywhere (RFC 9457).
 *
 * A `Problem` comes from a catalogue entry made by `problem()`. Whoever answers the caller sends `toJSON()`; whoever
 * works in the background takes it as final: what was refused for a reason will be refused for the same reason tomorrow.
 */

export interface ProblemKind {
  /** Stable and machine-readable, kebab-case: "idempotency-conflict". Clients branch on it. */
  readonly code: string;
  readonly status: number;
  readonly title: string;
}

/** One fault of one field of the request, so that a form can show it where it belongs. */
export interface FieldFault {
  /** Where: "header.idempotency-key", "body.user_id", "query.limit". */
  readonly field: string;
  readonly detail: string;
}

export interface ProblemOptions {
  readonly fields?: readonly FieldFault[];
  /** Sent as Retry-After: the refusal will pass. */
  readonly retryAfterSeconds?: number;
  /** For our log only; never sent. */
  readonly cause?: unknown;
}

const typeBase = "https://todoke.dev/problems/";

export class Problem extends Error {
  override readonly name = "Problem";
  readonly code: string;
  readonly status: number;
  readonly title: string;
  readonly fields: readonly FieldFault[] | undefined;
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

  /** The body of an `application/problem+json` answer. */
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

/** A catalogue entry: call it to make the refusal, `throw skuUnknown("no product gold-pass")`. */
export interface ProblemFactory {
  (detail: string, options?: ProblemOptions): Problem;
  readonly kind: ProblemKind;
}

/** Declares one entry of a problem catalogue. docs/errors.md lists them all, checked by a test. */
export function problem(kind: ProblemKind): ProblemFactory {
  const make = (detail: string, options?: ProblemOptions) => new Problem(kind, detail, options);
  return Object.assign(make, { kind });
}
