/** For tests on a real Redis: a server, and a client with all commands. */
import { type Engine, startEngine } from "@todoke/engines";
import { createClient } from "redis";
import { afterAll, beforeAll } from "vitest";

/** The Redis of a test file: TEST_REDIS_URL or a private one. The URL is known once tests run. */
export function sharedRedis(): { readonly url: string } {
  const configuredUrl = process.env.TEST_REDIS_URL;
  let engine: Engine | undefined;
  beforeAll(async () => {
    if (!configuredUrl) engine = await startEngine("redis");
  });
  afterAll(() => engine?.[Symbol.asyncDispose]());
  return {
    get url() {
      return configuredUrl || (engine?.url ?? "");
    },
  };
}

/** A client with all commands. It reconnects until `destroy()`. */
export async function operatorClient(url: string) {
  return createClient({ url })
    .on("error", () => {})
    .connect();
}
