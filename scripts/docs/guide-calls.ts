/**
 * Sends the calls of a guide to its service, in order, and compares every response with the page. `<name>` stands for the last
 * value of that field in a response.
 */
import { hash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { memoryBus } from "@todoke/kernel/bus";
import { testDatabase, until } from "@todoke/kernel/testing";
import { expect } from "vitest";
import { readCurl, type ShownCall } from "./calls.ts";

export interface GuideOptions {
  /** Values of the page's placeholders: "$ORDERS", "<in_a_week>". */
  readonly placeholders: Readonly<Record<string, string>>;
  /** Fields with a new value in each run: only their type is compared. */
  readonly variable: RegExp;
}

type Service = Pick<typeof import("@todoke/points"), "migrate" | "start">;

const devScopes = { orders: "orders:write+orders:read-all+orders:cancel-all+read", points: "points:write+read" };

/** Starts the service with the API key of `todoke dev`. */
export async function serveGuide(name: "orders" | "points", { migrate, start }: Service) {
  const t = await testDatabase();
  const env = {
    DATABASE_URL: t.url,
    [`${name.toUpperCase()}_PORT`]: "0",
    LOG_LEVEL: "silent",
    TODOKE_API_KEYS: `dev=${devScopes[name]}=${hash("sha256", "tdk_dev", "hex")}`,
  };
  await migrate(env, { dryRun: false });
  const service = await start(env, { openBus: async () => memoryBus() });
  return {
    url: service.url,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await t[Symbol.asyncDispose]();
    },
  };
}

export async function expectResponses(
  calls: readonly ShownCall[],
  { placeholders, variable }: GuideOptions,
): Promise<void> {
  const send = createSender(placeholders);
  const withoutVariable = (answer: unknown): unknown =>
    JSON.parse(JSON.stringify(answer, (key, value) => (variable.test(key) ? typeof value : value)));
  for (const { command, answer } of calls) {
    let response = await send(command);
    // Background work may not be done yet, so a read is repeated; the expectation below reports a difference.
    const isExpected = async () => {
      response = await send(command);
      return isDeepStrictEqual(withoutVariable(response), withoutVariable(answer));
    };
    if (!command.includes("-X ")) await until("the response is that of the page", isExpected).catch(() => {});
    expect(withoutVariable(response), command).toEqual(withoutVariable(answer));
  }
}

function createSender(placeholders: GuideOptions["placeholders"]): (command: string) => Promise<unknown> {
  const known = new Map(Object.entries(placeholders));
  return async (command) => {
    const filled = [...known].reduce((text, [name, value]) => text.replaceAll(name, value), command);
    const { url, ...request } = readCurl(filled);
    const answer = await (await fetch(url, request)).text();
    return JSON.parse(answer, (key, value) => {
      if (typeof value === "string") known.set(`<${key}>`, value);
      return value;
    });
  };
}
