/** The receiver of the demo's webhooks. It refuses some until the example data is complete, so that the console has dead letters. */
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Env } from "../services.ts";
import { refusedCount, refusedItem } from "./seed.ts";
import type { Handler } from "./site.ts";

export const webhookPath = "/demo/webhook";

/** The settings of notification; none if it has its own. */
export const webhookEnv = (given: Env, port: number): Env =>
  given.NOTIFICATION_SENDER
    ? {}
    : {
        NOTIFICATION_SENDER: "webhook",
        NOTIFICATION_WEBHOOK_URL: `http://127.0.0.1:${port}${webhookPath}`,
        NOTIFICATION_WEBHOOK_SECRET: `whsec_${Buffer.from("a demo needs no secret for this.").toString("base64")}`,
        NOTIFICATION_WEBHOOK_ALLOW_PRIVATE: "true",
      };

export interface Webhook {
  readonly handle: Handler;
  /** Waits for the dead letters, and repairs the receiver: what is redriven from now on arrives. */
  repair(): Promise<void>;
}

/** A seeding that continues after a kill has its dead letters already, and nothing more is refused. */
const refusalsWaitMs = 10_000;

export function openWebhook({ isBroken }: { readonly isBroken: boolean }): Webhook {
  const refused = new Set<string>();
  const complete = Promise.withResolvers<void>();
  let refuses = isBroken;
  return {
    async handle(request, response) {
      const isRefused = (await text(request)).includes(refusedItem) && refuses;
      if (isRefused) refused.add(String(request.headers["webhook-id"]));
      response.writeHead(isRefused ? 410 : 204).end();
      if (refused.size >= refusedCount) complete.resolve();
    },
    async repair() {
      await Promise.race([complete.promise, sleep(refusalsWaitMs, undefined, { ref: false })]);
      refuses = false;
    },
  };
}
