/** The webhook receiver: checks signatures, records every webhook and accepts it. */
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Arrival } from "./evidence.ts";
import type { Writer } from "./history.ts";
import type { Random } from "./random.ts";
import { webhookSecret } from "./services/notification.ts";

export interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly arrived: number;
  /** Rejects all webhooks with this status. */
  refuse(status: number): void;
  accept(): void;
}

/** Responses take time, so that senders have webhooks in flight when they are stopped. */
const responseDelayMs = { min: 5, max: 40 };

export async function openReceiver(arrivals: Writer<Arrival>, random: Random): Promise<Receiver> {
  let arrived = 0;
  let rejectStatus: number | undefined;
  const server = createServer((request, response) => {
    receive(request).then(
      async (arrival) => {
        if (rejectStatus !== undefined) return response.writeHead(rejectStatus).end();
        arrivals.write(arrival);
        arrived++;
        await sleep(random.between(responseDelayMs.min, responseDelayMs.max));
        return response.writeHead(204).end();
      },
      () => response.writeHead(400).end(),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    get arrived() {
      return arrived;
    },
    refuse: (status) => {
      rejectStatus = status;
    },
    accept: () => {
      rejectStatus = undefined;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

async function receive(request: IncomingMessage): Promise<Arrival> {
  const body = await text(request);
  const webhookId = String(request.headers["webhook-id"]);
  if (!isSigned(request, body)) throw new Error(`${webhookId} has an invalid signature`);
  return { at: Date.now(), webhookId, body };
}

function isSigned({ headers }: IncomingMessage, body: string): boolean {
  const key = Buffer.from(webhookSecret.slice("whsec_".length), "base64");
  const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
  return headers["webhook-signature"] === `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
}
