/**
 * Sends the calls of a guide to its service as the page has them, one after the other, and holds every answer to the one that
 * the page shows. What stands in `<…>` is what an answer last said under that name.
 */
import { hash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { memoryBus } from "@todoke/kernel/bus";
import { testDatabase, until } from "@todoke/kernel/testing";
import { expect } from "vitest";
import { readCurl, type ShownCall } from "./calls.ts";

export interface AnswersOptions {
  /** What the page's words stand for: "$ORDERS", "<in_a_week>". */
  readonly words: Readonly<Record<string, string>>;
  /** Names of what is another each time: only that it is there, and of which type, is compared. */
  readonly unsteady: RegExp;
}

type Service = Pick<typeof import("@todoke/points"), "migrate" | "start">;

/** The service, as `todoke` starts it, with the key of `todoke dev`. */
export async function serveGuide(name: "orders" | "points", { migrate, start }: Service) {
  const t = await testDatabase();
  const env = {
    DATABASE_URL: t.url,
    [`${name.toUpperCase()}_PORT`]: "0",
    LOG_LEVEL: "silent",
    TODOKE_API_KEYS: `dev=${name}:write+read=${hash("sha256", "tdk_dev", "hex")}`,
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

export async function expectAnswers(calls: readonly ShownCall[], { words, unsteady }: AnswersOptions): Promise<void> {
  const ask = asker(words);
  const steady = (answer: unknown): unknown =>
    JSON.parse(JSON.stringify(answer, (key, value) => (unsteady.test(key) ? typeof value : value)));
  for (const { command, answer } of calls) {
    let said = await ask(command);
    // What was begun goes its way meanwhile, so a read is asked again; if in vain, the line below shows what it says.
    const isSo = async () => {
      said = await ask(command);
      return isDeepStrictEqual(steady(said), steady(answer));
    };
    if (!command.includes("-X ")) await until("the answer is that of the page", isSo).catch(() => {});
    expect(steady(said), command).toEqual(steady(answer));
  }
}

function asker(words: AnswersOptions["words"]): (command: string) => Promise<unknown> {
  const known = new Map(Object.entries(words));
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
