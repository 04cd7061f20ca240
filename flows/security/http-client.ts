/** HTTP client for hostile requests: raw bytes, any header, and a timeout. */
import { once } from "node:events";
import { connect } from "node:net";

export interface RequestOptions {
  readonly method?: string;
  /** Session token, API key or signed token. */
  readonly bearer?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Text and bytes are sent as they are, other values as JSON. */
  readonly body?: unknown;
}

export interface HttpResponse {
  readonly status: number;
  /** Code of a problem. */
  readonly code: string | undefined;
  /** Fields that a problem names. */
  readonly fields: readonly string[];
  readonly headers: Headers;
  readonly text: string;
}

const timeoutMs = 60_000;

export async function send(url: string, options: RequestOptions = {}): Promise<HttpResponse> {
  const { method = "GET", bearer, headers = {}, body } = options;
  const response = await fetch(url, {
    method,
    redirect: "manual",
    headers: {
      ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: toBytes(body) }),
    signal: AbortSignal.timeout(timeoutMs),
  });
  return toResponse(response.status, response.headers, await response.text());
}

const toBytes = (body: unknown): string | Uint8Array<ArrayBuffer> =>
  typeof body === "string" || body instanceof Uint8Array ? (body as string) : JSON.stringify(body);

function toResponse(status: number, headers: Headers, body: string): HttpResponse {
  const isJson = /json/.test(headers.get("content-type") ?? "");
  const { code, errors = [] } = (isJson && body ? (JSON.parse(body) ?? {}) : {}) as {
    code?: string;
    errors?: { field: string }[];
  };
  return { status, code, fields: errors.map(({ field }) => field), headers, text: body };
}

/** Sends a request line and headers unchanged. */
export const sendRaw = (url: string, lines: readonly string[], body = ""): Promise<string> =>
  sendBytes(url, `${lines.join("\r\n")}\r\n\r\n${body}`);

/** Returns everything received until the server closes or resets the connection. */
export async function sendBytes(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`${url} sent no response`)));
  await once(socket, "connect");
  socket.write(bytes, "latin1");
  let received = "";
  try {
    for await (const part of socket.setEncoding("utf8")) received += part;
  } catch (error) {
    const isReset = error instanceof Error && "code" in error && /^(ECONNRESET|EPIPE)$/.test(String(error.code));
    if (!isReset || received === "") throw error;
  }
  return received;
}

/** The status in the result of `sendRaw`. */
export const parseStatus = (received: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(received)?.[1]);
