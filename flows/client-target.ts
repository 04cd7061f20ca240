/**
 * All services for programs with the client (`npm run interop -- client`): behind a proxy that loses answers, and with a receiver that
 * keeps a webhook as it was sent.
 */
import { hash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { settingsFor, startAll } from "./all-services.ts";

export interface SentWebhook {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const apiKey = "tdk_everything";
const scopes = "entitlements:write+points:write+read";

export async function startClientTarget() {
  await using parts = new AsyncDisposableStack();
  const webhooks: SentWebhook[] = [];
  const secret = `whsec_${randomBytes(32).toString("base64")}`;
  const receiver = await listen(
    createServer(async (request, response) => {
      webhooks.push({ headers: request.headers, body: await textOf(request) });
      response.writeHead(204).end();
    }),
  );
  parts.use(receiver);
  const all = parts.use(
    await startAll({
      settings: {
        TODOKE_API_KEYS: `${settingsFor("").TODOKE_API_KEYS},everything=${scopes}=${hash("sha256", apiKey, "hex")}`,
        NOTIFICATION_SENDER: "webhook",
        NOTIFICATION_WEBHOOK_URL: receiver.url,
        NOTIFICATION_WEBHOOK_SECRET: secret,
        NOTIFICATION_WEBHOOK_ALLOW_PRIVATE: "true",
      },
    }),
  );
  const urlOf = (wanted: string) => all.running.find(({ name }) => name === wanted)?.url ?? "";
  const proxy = parts.use(await startCuttingProxy(urlOf("entitlement")));
  const urls = { entitlement: proxy.url, points: urlOf("points"), notification: urlOf("notification") };
  const started = parts.move();
  return {
    setup: { urls, gateway: urlOf("gateway-bff"), apiKey },
    secret,
    webhooks,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** Cuts the first answer to each key that begins with cut-head or cut-body, after the service has acted. */
async function startCuttingProxy(target: string) {
  const seen = new Set<string>();
  const server = createServer(async (request, response) => {
    const { host: _, connection: _connection, ...headers } = request.headers;
    const body = await textOf(request);
    const key = String(headers["idempotency-key"]);
    const answer = await fetch(target + request.url, {
      method: request.method ?? "GET",
      headers: headers as Record<string, string>,
      ...(body !== "" && { body }),
    });
    const text = await answer.text();
    const isFirst = !seen.has(key);
    seen.add(key);
    if (isFirst && key.startsWith("cut-head")) return void response.destroy();
    const sent = Object.fromEntries(
      ["content-type", "idempotency-replayed"].flatMap((name) => {
        const value = answer.headers.get(name);
        return value === null ? [] : [[name, value]];
      }),
    );
    response.writeHead(answer.status, { ...sent, "content-length": Buffer.byteLength(text) });
    if (isFirst && key.startsWith("cut-body")) return response.write(text.slice(0, 10), () => response.destroy());
    return void response.end(text);
  });
  return await listen(server);
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

async function listen(server: Server) {
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
