/** The options of a client and of its calls. */

/** For every call. */
export interface CallOptions {
  /** Ends the call, also while it waits for the next attempt. */
  readonly signal?: AbortSignal | undefined;
  /** How long the call may take with all its attempts. Default: 30 s. */
  readonly deadlineMs?: number | undefined;
  /** How long one attempt may take, with the body of its answer. Default: 10 s. */
  readonly tryMs?: number | undefined;
}

/** For a command with an idempotency key. */
export interface CommandOptions extends CallOptions {
  /**
   * The idempotency key: 1 to 255 visible ASCII characters. By default a new one. Use the id of what causes the command (an
   * order, a purchase), so that a program that is restarted repeats the command instead of sending a second one.
   */
  readonly key?: string | undefined;
}

/** For a change of an object that must not have changed since it was read. */
export interface ConditionalOptions extends CallOptions {
  /** The ETag of the version that was read: `(await call.withResponse()).response.headers.get("etag")`. */
  readonly ifMatch?: string | undefined;
}

export type Fetch = (request: Request) => Promise<Response>;

/** For every call of a client, unless a call says otherwise. */
export interface SharedOptions {
  /** Replaces the global fetch: for a proxy, for tracing, for tests. */
  readonly fetch?: Fetch | undefined;
  readonly deadlineMs?: number | undefined;
  readonly tryMs?: number | undefined;
  /** The first pause between two attempts is up to this long; each further one up to twice as long, at most 5 s. Default: 200 ms. */
  readonly retryBaseMs?: number | undefined;
  /** The Accept-Language header. Default: what the browser sends. */
  readonly language?: string | undefined;
}

/** The settings of a client. */
export interface Context {
  readonly baseUrl: string;
  /** Sent with every request. */
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: Fetch;
  readonly deadlineMs: number;
  readonly tryMs: number;
  readonly retryBaseMs: number;
}
