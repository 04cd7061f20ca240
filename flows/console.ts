/** A running system with something to see in the console, and the people who use it. */

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { BrowserContext, Page } from "playwright-core";
import { type LocalService, type LocalSetup, startLocalSetup } from "./local-setup.ts";

/** Where notifications are sent: it rejects every notification until it is repaired. */
async function startReceiver() {
  let isRepaired = false;
  const server = createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(isRepaired ? 204 : 410).end());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    repair: () => {
      isRepaired = true;
    },
    breakAgain: () => {
      isRepaired = false;
    },
    close: () => server.close(),
  };
}

export interface ConsoleSetup extends AsyncDisposable {
  readonly setup: LocalSetup;
  readonly receiver: Awaited<ReturnType<typeof startReceiver>>;
  /** The user that `npm start` names in its examples. */
  readonly alice: string;
  /** A request of a back-end. */
  call(service: LocalService, method: string, path: string, body: object, key?: string): Promise<void>;
}

export async function startConsoleSetup(more: Record<string, string> = {}): Promise<ConsoleSetup> {
  const receiver = await startReceiver();
  const setup = await startLocalSetup({
    NOTIFICATION_SENDER: "webhook",
    NOTIFICATION_WEBHOOK_URL: receiver.url,
    NOTIFICATION_WEBHOOK_SECRET: "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
    NOTIFICATION_WEBHOOK_ALLOW_PRIVATE: "true",
    GATEWAY_BFF_LIMIT_LOGIN: "1000/60s",
    GATEWAY_BFF_LIMIT_READ: "100000/60s",
    GATEWAY_BFF_LIMIT_ADDRESS: "100000/60s",
    ...more,
  });
  const alice = /The user ID of alice is (\S+?)\.?\s/.exec(setup.output())?.[1] ?? "";
  return {
    setup,
    receiver,
    alice,
    async call(service, method, path, body, key = crypto.randomUUID()) {
      const response = await fetch(setup.serviceUrl(service) + path, {
        method,
        headers: {
          authorization: "Bearer tdk_dev",
          "content-type": "application/json",
          "idempotency-key": key,
        },
        body: JSON.stringify(body),
      });
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    },
    async [Symbol.asyncDispose]() {
      await setup[Symbol.asyncDispose]();
      receiver.close();
    },
  };
}

/** Opens a page of the console and logs in on the way, which ends at that page. */
export async function openConsole(person: BrowserContext, origin: string, name: string, path = ""): Promise<Page> {
  const page = await person.newPage();
  await page.goto(`${origin}/console${path}`);
  await page.locator("input[name=username]").fill(name);
  await page.locator("input[name=password]").fill(`${name}-demo`);
  await page.locator("button[type=submit]").click();
  await page.locator("header.bar").waitFor();
  return page;
}
