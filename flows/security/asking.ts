/** How the tests here ask: over a real connection, also with what no polite client would send, and in bounded time. */
import { once } from "node:events";
import { connect } from "node:net";

export interface Wish {
  readonly method?: string;
  /** The session token, API key or signed token to come with. */
  readonly bearer?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as it is when it is text or bytes, and as JSON otherwise. */
  readonly body?: unknown;
}

export interface Answered {
  readonly status: number;
  /** Of a problem; nothing where it was none. */
  readonly code: string | undefined;
  /** The fields that a refusal names. */
  readonly fields: readonly string[];
  readonly headers: Headers;
  readonly text: string;
}

const patienceMs = 60_000;

export async function ask(url: string, wish: Wish = {}): Promise<Answered> {
  const { method = "GET", bearer, headers = {}, body } = wish;
  const answer = await fetch(url, {
    method,
    redirect: "manual",
    headers: {
      ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: bytesOf(body) }),
    signal: AbortSignal.timeout(patienceMs),
  });
  return answered(answer.status, answer.headers, await answer.text());
}

const bytesOf = (body: unknown): string | Uint8Array<ArrayBuffer> =>
  typeof body === "string" || body instanceof Uint8Array ? (body as string) : JSON.stringify(body);

function answered(status: number, headers: Headers, body: string): Answered {
  const isJson = /json/.test(headers.get("content-type") ?? "");
  const { code, errors = [] } = (isJson && body ? (JSON.parse(body) ?? {}) : {}) as {
    code?: string;
    errors?: { field: string }[];
  };
  return { status, code, fields: errors.map(({ field }) => field), headers, text: body };
}

/** A request line and headers as they are. */
export const askRaw = (url: string, lines: readonly string[], body = ""): Promise<string> =>
  hear(url, `${lines.join("\r\n")}\r\n\r\n${body}`);

/** All that comes back for these bytes until the server closes the connection, or resets it for what it did not read. */
export async function hear(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.setTimeout(patienceMs, () => socket.destroy(new Error(`${url} did not answer`)));
  await once(socket, "connect");
  socket.write(bytes, "latin1");
  let heard = "";
  try {
    for await (const part of socket.setEncoding("utf8")) heard += part;
  } catch (error) {
    const isReset = error instanceof Error && "code" in error && /^(ECONNRESET|EPIPE)$/.test(String(error.code));
    if (!isReset || heard === "") throw error;
  }
  return heard;
}

/** The status in what `askRaw` heard. */
export const statusOf = (heard: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(heard)?.[1]);
