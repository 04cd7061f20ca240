import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { until } from "@todoke/kernel/testing";
import * as points from "@todoke/points";
import { expect, test } from "vitest";
import { callsOf, readCurl, stepsOf } from "./calls.ts";
import { createGuideCaller, expectResponses, serveGuide } from "./guide-calls.ts";
import { blocksOf, sectionOf } from "./markdown.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const page = readFileSync(`${root}docs/guides/points.md`, "utf8");
const scenarios = sectionOf(page, "The three scenarios");
const calls = callsOf(page.replace(scenarios, ""));

const variable =
  /^(id|transaction_id|hold_id|lot_id|schedule_id|refers_to|detail|instance|next_run_at|as_of|.*(created|updated|ends|expires)_at)$/;

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
const auth = "Authorization: Bearer tdk_dev";
const placeholdersOf = (url: string) => ({ $POINTS: url, $AUTH: auth, $JSON: "Content-Type: application/json" });

test("every call of the guide to points gets the response on the page", async () => {
  await using t = await serveGuide("points", points);
  expect(calls.length).toBeGreaterThan(15);
  const placeholders = { ...placeholdersOf(t.url), "<in_a_week>": inMs(7 * 86_400_000) };
  await expectResponses(calls, { placeholders, variable });
});

test("the three scenarios of the guide to points run as on the page", { timeout: 120_000 }, async () => {
  await using t = await serveGuide("points", points);
  const placeholders = { ...placeholdersOf(t.url), "<in_a_second>": inMs(1_000) };
  // The first reservation is due at a time that differs in each run.
  const guide = createGuideCaller({ placeholders, variable: new RegExp(`${variable.source}|^execute_at$`) });
  const done: string[] = [];

  /** A start of everything is a start of this service here, with the variables before the command. */
  async function restart(settings: string): Promise<void> {
    await t.restart(Object.fromEntries(settings.split(" ").flatMap((each) => (each ? [each.split("=")] : []))));
    guide.setPlaceholder("$POINTS", t.url);
  }

  /** Returns when the worker has handled the copies, so that the next call cannot be too early. */
  async function resend(command: string): Promise<void> {
    const env = { PATH: process.env.PATH, DATABASE_URL: t.databaseUrl, POINTS: t.url, AUTH: auth };
    const { stdout, stderr } = await promisify(execFile)("sh", ["-c", guide.fill(command)], { cwd: root, env });
    expect([stdout, stderr]).toEqual(["sent 10 times\n", ""]);
    // The copies only: the outbox has the service's own message, if there was one.
    const copies = `select from processed_events where event_id not in (select event_id from outbox_events)`;
    const handled = async () => (await t.db.query(copies)).rowCount === 10;
    await until("the worker has handled them all", handled);
  }

  for (const { command, answer } of stepsOf(scenarios)) {
    const [, settings] = command.match(/^((?:\w+=\S+ )*)npm start$/) ?? [];
    const [, example] = command.match(/^npm exec -- (node examples.*)$/m) ?? [];
    if (answer !== undefined) await guide.expectResponse({ command, answer });
    else if (settings !== undefined) await restart(settings);
    else if (example) await resend(example);
    else throw new Error(`cannot be run: ${command}`);
    done.push(answer === undefined ? (command.split("\n").at(-1) ?? "") : "curl");
  }
  expect(done).toEqual([
    ...["curl", "curl", "npm exec -- node examples/resend-reservation/main.ts <id> 10", "curl"],
    ...["POINTS_ROLES=api,maintenance,relay,scheduler npm start", "curl", "curl", "npm start", "curl"],
  ]);
  const { rows } = await t.db.query(`select user_id, kind, point_amount::int from point_transactions order by user_id`);
  expect(rows).toEqual(["testUser1", "testUser2"].map((user_id) => ({ user_id, kind: "GRANT", point_amount: 100 })));
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
