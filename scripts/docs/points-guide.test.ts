import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { memoryBus } from "@todoke/kernel/bus";
import { testDatabase, until } from "@todoke/kernel/testing";
import { migrate, start } from "@todoke/points";
import { expect, test } from "vitest";
import { callsOf, readCurl } from "./calls.ts";
import { blocksOf } from "./markdown.ts";

const page = readFileSync(new URL("../../docs/guides/points.md", import.meta.url), "utf8");
const calls = callsOf(page);

/** The service, as `todoke` starts it, with the key of `todoke dev`. */
async function setup() {
  const t = await testDatabase();
  const env = {
    DATABASE_URL: t.url,
    POINTS_PORT: "0",
    LOG_LEVEL: "silent",
    TODOKE_API_KEYS: `dev=points:write+read=${hash("sha256", "tdk_dev", "hex")}`,
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

/** What is another each time: only that it is there, and of which type, is compared. */
const unsteady =
  /^(id|transaction_id|hold_id|lot_id|schedule_id|refers_to|detail|instance|next_run_at|as_of|.*(created|updated|ends|expires)_at)$/;

const steady = (answer: unknown): unknown =>
  JSON.parse(JSON.stringify(answer, (key, value) => (unsteady.test(key) ? typeof value : value)));

test("every call of the guide to points is answered as the page says", async () => {
  await using t = await setup();
  const ask = asker(t.url);
  expect(calls.length).toBeGreaterThan(15);
  for (const { command, answer } of calls) {
    let said = await ask(command);
    // What was booked ahead comes a moment later, so a read is asked again; if in vain, the line below shows what it says.
    const isSo = async () => {
      said = await ask(command);
      return isDeepStrictEqual(steady(said), steady(answer));
    };
    if (!command.includes("-X ")) await until("the answer is that of the page", isSo).catch(() => {});
    expect(steady(said), command).toEqual(steady(answer));
  }
});

/** Asks as the page does: what stands in <…> is what an answer last said under that name. */
function asker(url: string) {
  const known = new Map([
    ["$POINTS", url],
    ["$AUTH", "Authorization: Bearer tdk_dev"],
    ["$JSON", "Content-Type: application/json"],
    ["<in_a_week>", new Date(Date.now() + 7 * 86_400_000).toISOString()],
  ]);
  return async (command: string): Promise<unknown> => {
    const filled = [...known].reduce((text, [name, value]) => text.replaceAll(name, value), command);
    const { url, ...request } = readCurl(filled);
    const answer = await (await fetch(url, request)).text();
    return JSON.parse(answer, (key, value) => {
      if (typeof value === "string") known.set(`<${key}>`, value);
      return value;
    });
  };
}

test("its way to read numbers in JavaScript keeps every digit", async () => {
  const [code = ""] = blocksOf(page, "js");
  const { parsePoints } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
  expect(
    parsePoints('{"balance":9223372036854775807,"held":9007199254740991,"pending":-9007199254740992,"a":[1.5]}'),
  ).toEqual({
    balance: 9_223_372_036_854_775_807n,
    held: 9_007_199_254_740_991,
    pending: -9_007_199_254_740_992n,
    a: [1.5],
  });
});

test("a call is read as a shell and curl would, and what is not understood is refused", () => {
  const command = `curl -s -X PUT "http://a/b?c=d" -H "E: f: g" \\\n  -d '{"h":"http://i"}'`;
  expect(readCurl(command)).toEqual({
    url: "http://a/b?c=d",
    method: "PUT",
    headers: { E: "f: g" },
    body: '{"h":"http://i"}',
  });
  expect(() => readCurl("curl --data x http://a")).toThrow("cannot be read");
});
