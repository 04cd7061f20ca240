/** What tests on a real Redis share: the server of a test file, and what an operator has beside the services. */
import { type Engine, startEngine } from "@todoke/engines";
import { createClient } from "redis";
import { afterAll, beforeAll } from "vitest";

/** The Redis of a test file: the one that the environment names, or a private one. Its URL is known once tests run. */
export function sharedRedis(): { readonly url: string } {
  const named = process.env.TEST_REDIS_URL;
  let engine: Engine | undefined;
  beforeAll(async () => {
    if (!named) engine = await startEngine("redis");
  });
  afterAll(() => engine?.[Symbol.asyncDispose]());
  return {
    get url() {
      return named || (engine?.url ?? "");
    },
  };
}

/** A client with all commands, as an operator has one. It outlives the server; `destroy()` ends it. */
export async function operatorClient(url: string) {
  return createClient({ url })
    .on("error", () => {})
    .connect();
}
