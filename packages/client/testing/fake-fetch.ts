/** The far side of the client: a fetch with prepared answers, which records what it was sent. */
import type { Fetch } from "../options.ts";

export interface Sent {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type Reply = (request: Request) => Response | Promise<Response>;

/** Answers the first request by the first reply, and all further ones by the last. */
export function fakeFetch(...replies: readonly Reply[]): { readonly fetch: Fetch; readonly sent: Sent[] } {
  const sent: Sent[] = [];
  const fetch: Fetch = async (request) => {
    const { method, url, headers } = request;
    sent.push({ method, url, headers: Object.fromEntries(headers), body: await request.clone().text() });
    const reply = replies[Math.min(sent.length, replies.length) - 1] as Reply;
    return reply(request);
  };
  return { fetch, sent };
}

export const json =
  (value: unknown, headers: Record<string, string> = {}, status = 200): Reply =>
  () =>
    new Response(JSON.stringify(value), { status, headers: { "content-type": "application/json", ...headers } });

export const problem =
  (status: number, code: string, headers: Record<string, string> = {}): Reply =>
  () =>
    new Response(JSON.stringify({ type: "about:blank", title: "It failed", status, code, detail: "so it is" }), {
      status,
      headers: { "content-type": "application/problem+json; charset=utf-8", ...headers },
    });

/** The connection is lost before an answer, as fetch reports it. */
export const lost: Reply = () => Promise.reject(new TypeError("fetch failed"));

/** The connection is lost in the middle of the body. */
export const cutBody: Reply = () => {
  const parts = ['{"bal'];
  const body = new ReadableStream({
    pull(controller) {
      const part = parts.shift();
      if (part) controller.enqueue(new TextEncoder().encode(part));
      else controller.error(new TypeError("terminated"));
    },
  });
  return new Response(body, { headers: { "content-type": "application/json" } });
};

/** Never answers; ends when the request is aborted. */
export const silence: Reply = ({ signal }) =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
