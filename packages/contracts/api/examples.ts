/**
 * An example request and response of every operation, by its operationId. They are recorded from running services by
 * `npm run examples`, and a test sends each of them again.
 */
import { readFileSync } from "node:fs";

export interface Example {
  readonly request: {
    readonly path?: Readonly<Record<string, string>>;
    readonly query?: Readonly<Record<string, string | number>>;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: unknown;
  };
  /** Missing if the request is shown and not sent. */
  readonly status?: number;
  /** JSON, or the text of a response that is none; missing if it has no body. */
  readonly response?: unknown;
}

let examples: Readonly<Record<string, Example>> | undefined;

/** Reads the file at the first call: only API documents need it. */
export function exampleOf(operationId: string): Example | undefined {
  examples ??= JSON.parse(readFileSync(new URL("./examples.json", import.meta.url), "utf8")) as Record<string, Example>;
  return Object.hasOwn(examples, operationId) ? examples[operationId] : undefined;
}
