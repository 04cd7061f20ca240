import { readFileSync } from "node:fs";
import * as points from "@todoke/points";
import { expect, test } from "vitest";
import { callsOf, readCurl } from "./calls.ts";
import { expectResponses, serveGuide } from "./guide-calls.ts";
import { blocksOf } from "./markdown.ts";

const page = readFileSync(new URL("../../docs/guides/points.md", import.meta.url), "utf8");
const calls = callsOf(page);

const variable =
  /^(id|transaction_id|hold_id|lot_id|schedule_id|refers_to|detail|instance|next_run_at|as_of|.*(created|updated|ends|expires)_at)$/;

test("every call of the guide to points gets the response on the page", async () => {
  await using t = await serveGuide("points", points);
  expect(calls.length).toBeGreaterThan(15);
  const placeholders = {
    $POINTS: t.url,
    $AUTH: "Authorization: Bearer tdk_dev",
    $JSON: "Content-Type: application/json",
    "<in_a_week>": new Date(Date.now() + 7 * 86_400_000).toISOString(),
  };
  await expectResponses(calls, { placeholders, variable });
});

test("the guide's JavaScript parser keeps every digit", async () => {
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

test("readCurl parses like a shell and rejects unknown switches", () => {
  const command = `curl -s -X PUT "http://a/b?c=d" -H "E: f: g" \\\n  -d '{"h":"http://i"}'`;
  expect(readCurl(command)).toEqual({
    url: "http://a/b?c=d",
    method: "PUT",
    headers: { E: "f: g" },
    body: '{"h":"http://i"}',
  });
  expect(() => readCurl("curl --data x http://a")).toThrow("cannot be read");
});
