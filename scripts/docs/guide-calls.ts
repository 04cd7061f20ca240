/**
 * Sends the calls of a guide to its service, in order, and compares every response with the page. `<name>` stands for the last
 * value of that field in a response.
 */
import { hash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { openPostgresBus } from "@todoke/bus-postgres";
import type { Db } from "@todoke/kernel/db";
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

export interface GuideService extends AsyncDisposable {
  readonly url: string;
  readonly databaseUrl: string;
  /** The schema of the service. */
  readonly db: Db;
  /** Stops the service and starts it on the same data, with other settings. */
  restart(settings: Readonly<Record<string, string>>): Promise<void>;
}

/** Starts the service with the API key of `todoke dev`. The bus is in its database. */
export async function serveGuide(name: "orders" | "points", { migrate, start }: Service): Promise<GuideService> {
  const t = await testDatabase();
  const env = {
    DATABASE_URL: t.url,
    [`${name.toUpperCase()}_PORT`]: "0",
    LOG_LEVEL: "silent",
    TODOKE_API_KEYS: `dev=${devScopes[name]}=${hash("sha256", "tdk_dev", "hex")}`,
  };
  await migrate(env, { dryRun: false });
  const openBus = () => openPostgresBus({ url: t.url });
  let service = await start(env, { openBus });
  return {
    get url() {
      return service.url;
    },
    databaseUrl: t.url,
    db: t.open({ schema: name }),
    async restart(settings) {
      await service[Symbol.asyncDispose]();
      service = await start({ ...env, ...settings }, { openBus });
    },
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await t[Symbol.asyncDispose]();
    },
  };
}

export async function expectResponses(calls: readonly ShownCall[], options: GuideOptions): Promise<void> {
  const guide = createGuideCaller(options);
  for (const call of calls) await guide.expectResponse(call);
}

export interface GuideCaller {
  /** Sends the call and compares the response with the page. */
  expectResponse(call: ShownCall): Promise<void>;
  /** Replaces the placeholders of a text by their values. */
  fill(text: string): string;
  setPlaceholder(name: string, value: string): void;
}

export function createGuideCaller({ placeholders, variable }: GuideOptions): GuideCaller {
  const known = new Map(Object.entries(placeholders));
  const fill = (text: string) => [...known].reduce((filled, [name, value]) => filled.replaceAll(name, value), text);
  async function send(command: string): Promise<unknown> {
    const { url, ...request } = readCurl(fill(command));
    const answer = await (await fetch(url, request)).text();
    return JSON.parse(answer, (key, value) => {
      if (typeof value === "string") known.set(`<${key}>`, value);
      return value;
    });
  }
  const withoutVariable = (answer: unknown): unknown =>
    JSON.parse(JSON.stringify(answer, (key, value) => (variable.test(key) ? typeof value : value)));
  async function expectResponse({ command, answer }: ShownCall): Promise<void> {
    let response = await send(command);
    // Background work may not be done yet, so a read is repeated; the expectation below reports a difference.
    const isExpected = async () => {
      response = await send(command);
      return isDeepStrictEqual(withoutVariable(response), withoutVariable(answer));
    };
    if (!command.includes("-X ")) await until("the response is that of the page", isExpected).catch(() => {});
    expect(withoutVariable(response), command).toEqual(withoutVariable(answer));
  }
  return { expectResponse, fill, setPlaceholder: (name, value) => void known.set(name, value) };
}
