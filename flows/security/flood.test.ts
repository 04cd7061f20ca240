/**
 * No pattern of connections or pipelining gets more through one gateway than a caller's limit, also while the store that
 * counts is too slow to answer; and none keeps others waiting, or fills the log.
 */
import { connect } from "node:net";
import { until } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startAll } from "../all-services.ts";
import { ask } from "./asking.ts";

type All = Awaited<ReturnType<typeof startAll>>;
let all: All;
const quota = 600;
beforeAll(async () => {
  all = await startAll({
    settings: {
      // Nothing of a quota comes back while the test runs. A third of it and one more can be had at once.
      GATEWAY_BFF_LIMIT_READ: `${quota}/3600s`,
      GATEWAY_BFF_LIMIT_ADDRESS: "1000000/60s",
      // The store is always too late, as under a flood.
      GATEWAY_BFF_LIMIT_WAIT_MS: "10",
    },
  });
});
afterAll(() => all[Symbol.asyncDispose]());

interface Pattern {
  readonly connections: number;
  /** Requests that each connection sends at once, before it reads anything. */
  readonly pipelined: number;
  /** How often each connection is made anew after it was closed. */
  readonly rounds: number;
}

/** Sends the pattern and counts the answers by status. */
async function flood(url: string, request: string, { connections, pipelined, rounds }: Pattern) {
  const counts: Record<string, number> = {};
  async function one(): Promise<void> {
    const heard = await answersTo(url, request.repeat(pipelined), pipelined);
    for (const [, status = ""] of heard.matchAll(/HTTP\/1\.1 (\d{3}) /g)) counts[status] = (counts[status] ?? 0) + 1;
  }
  for (let round = 0; round < rounds; round++) await Promise.all(Array.from({ length: connections }, one));
  return counts;
}

/** All that comes back until every request is answered, or the server has closed the connection. */
async function answersTo(url: string, bytes: string, count: number): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {}); // A reset ends it like a close.
  let heard = "";
  let answers = 0;
  socket.setEncoding("utf8").on("data", (text: string) => {
    heard += text;
    answers += text.split("HTTP/1.1 ").length - 1;
  });
  socket.write(bytes);
  await until("it is answered or closed", () => socket.closed || answers >= count);
  socket.destroy();
  return heard;
}

const patterns: readonly Pattern[] = [
  { connections: 4, pipelined: 5_000, rounds: 1 },
  { connections: 1, pipelined: 90, rounds: 20 },
  { connections: 200, pipelined: 10, rounds: 2 },
  { connections: 400, pipelined: 1, rounds: 3 },
];

test.each(patterns)(
  "$connections connections of $pipelined requests, $rounds times: one user gets the limit and no more",
  async (pattern) => {
    const [gateway = ""] = all.gateways;
    const bearer = await all.openSession(await all.makeUser(`flood-${pattern.connections}-${pattern.pipelined}`));
    const request = `GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${bearer}\r\n\r\n`;
    const counts = await flood(gateway, request, pattern);
    const passed = Object.entries(counts).reduce((sum, [status, count]) => sum + (status === "429" ? 0 : count), 0);
    expect(passed).toBeLessThanOrEqual(1.2 * quota);
    expect(counts["200"] ?? 0).toBeLessThanOrEqual(quota);
    // Whoever goes on sending behind a refusal is cut off, perhaps without an answer. For the others it is no closed door.
    if (pattern.pipelined < 1_000) {
      expect(counts["200"]).toBeGreaterThan(50);
      expect(counts["429"]).toBeGreaterThan(0);
    }
    // Others are served.
    const other = await all.openSession(await all.makeUser(`bystander-${pattern.connections}-${pattern.pipelined}`));
    expect((await ask(`${gateway}/v1/sessions`, { bearer: other })).status).toBe(200);
  },
);

test("strangers who flood one gateway get their address's share, whatever they ask for", async () => {
  const [gateway = ""] = all.gateways;
  const paths = ["/v1/me", "/nothing", "/v1/users/x/profile", "/"];
  const request = paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join("");
  const counts = await flood(gateway, request, { connections: 20, pipelined: 20, rounds: 3 });
  const passed = Object.entries(counts).reduce((sum, [status, count]) => sum + (status === "429" ? 0 : count), 0);
  expect(passed).toBeLessThanOrEqual(1.2 * quota);
  expect(counts["500"] ?? 0).toBe(0);
});
