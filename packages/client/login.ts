/**
 * The login of a program: the player logs in with the browser, which then calls a port of this machine (RFC 8252) with a code
 * that only this program can use (PKCE). Runs on Node, Deno and Bun.
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createClient } from "./client.ts";
import type { SessionToken } from "./gen/schemas.ts";
import type { SharedOptions } from "./options.ts";

export interface LogInOptions extends Pick<SharedOptions, "fetch"> {
  /** The address of the gateway. */
  readonly gateway: string;
  /** Opens the address in the player's browser. */
  readonly openBrowser: (url: string) => unknown;
  readonly signal?: AbortSignal | undefined;
  /** How long the player may take. Default: ten minutes, which is also how long the gateway waits. */
  readonly timeoutMs?: number;
}

export class LogInFailed extends Error {
  override readonly name = "LogInFailed";
}

/** Returns the session for `createClient({ gateway, session })`. Keep it as a secret. */
export async function logIn({
  gateway,
  openBrowser,
  signal,
  timeoutMs = 600_000,
  ...shared
}: LogInOptions): Promise<SessionToken> {
  const [verifier, state] = [randomText(), randomText()];
  // Not AbortSignal.timeout(): on Deno its timer keeps the program running until it ends.
  const timeout = new AbortController();
  const timer = setTimeout(
    () => timeout.abort(new DOMException("the player took too long", "TimeoutError")),
    timeoutMs,
  );
  const callback = await listenForCode(state, signal ? AbortSignal.any([signal, timeout.signal]) : timeout.signal);
  try {
    const query = new URLSearchParams({
      client: "native",
      redirect_uri: callback.url,
      code_challenge: await challengeOf(verifier),
      state,
    });
    await openBrowser(`${gateway.replace(/\/+$/, "")}/login?${query}`);
    const client = createClient({ gateway, ...shared });
    return await client.gateway.fetchSessionToken({ code: await callback.code, code_verifier: verifier });
  } finally {
    clearTimeout(timer);
    callback.close();
  }
}

const randomText = (): string => toBase64Url(crypto.getRandomValues(new Uint8Array(32)));

const challengeOf = async (verifier: string): Promise<string> =>
  toBase64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))));

const toBase64Url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

const path = "/done";

/** Requests without our state are not from the gateway, and are ignored. */
async function listenForCode(state: string, signal: AbortSignal) {
  const server = createServer();
  await new Promise<void>((listening, failed) => {
    server.once("error", failed);
    server.listen(0, "127.0.0.1", listening);
  });
  const code = new Promise<string>((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    server.on("request", (request, response) => {
      const [asked, origin] = [request.url ?? "/", "http://127.0.0.1"];
      // Anything on this machine may ask for "//", which is no address.
      const url = URL.canParse(asked, origin) ? new URL(asked, origin) : undefined;
      if (url?.pathname !== path || url.searchParams.get("state") !== state)
        return sendPage(response, 404, "Nothing is here.");
      const received = url.searchParams.get("code");
      const text = received
        ? "You are logged in. You can close this window."
        : "The login failed. You can close this window.";
      sendPage(response, 200, text);
      if (received) resolve(received);
      else reject(new LogInFailed(`the login failed: ${url.searchParams.get("error") ?? "no code"}`));
    });
  });
  code.catch(() => {}); // It may fail before it is awaited.
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.close();
    server.closeIdleConnections();
  };
  return { url: `http://127.0.0.1:${port}${path}`, code, close };
}

function sendPage(response: ServerResponse, status: number, text: string): void {
  const headers = { "content-type": "text/html; charset=utf-8", connection: "close", "cache-control": "no-store" };
  response.writeHead(status, headers).end(`<!doctype html><title>Todoke</title><p>${text}</p>`);
}
