/**
 * No pattern of connections or pipelining gets more than a caller's limit through one gateway, also while the counting store is
 * too slow; other callers are still served.
 */
import { connect } from "node:net";
import { until } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startAll } from "../all-services.ts";
import { send } from "./http-client.ts";

type All = Awaited<ReturnType<typeof startAll>>;
let all: All;
const quota = 600;
beforeAll(async () => {
  all = await startAll({
    settings: {
      // No quota is refilled during the test. The burst is a third of the quota plus one.
      GATEWAY_BFF_LIMIT_READ: `${quota}/3600s`,
      GATEWAY_BFF_LIMIT_ADDRESS: "1000000/60s",
      // The store is always too slow, as under a flood.
      GATEWAY_BFF_LIMIT_WAIT_MS: "10",
    },
  });
});
afterAll(() => all[Symbol.asyncDispose]());

interface Pattern {
  readonly connections: number;
  /** Requests that each connection sends before it reads. */
  readonly pipelined: number;
  /** How often each connection is reopened. */
  readonly rounds: number;
}

/** Sends the pattern and counts responses by status. */
async function flood(url: string, request: string, { connections, pipelined, rounds }: Pattern) {
  const counts: Record<string, number> = {};
  async function one(): Promise<void> {
    const received = await sendPipelined(url, request.repeat(pipelined), pipelined);
    for (const [, status = ""] of received.matchAll(/HTTP\/1\.1 (\d{3}) /g)) counts[status] = (counts[status] ?? 0) + 1;
  }
  for (let round = 0; round < rounds; round++) await Promise.all(Array.from({ length: connections }, one));
  return counts;
}

/** Returns everything received until every request is answered or the connection is closed. */
async function sendPipelined(url: string, bytes: string, count: number): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {}); // A reset ends it like a close.
  let received = "";
  let responses = 0;
  socket.setEncoding("utf8").on("data", (text: string) => {
    received += text;
    responses += text.split("HTTP/1.1 ").length - 1;
  });
  socket.write(bytes);
  await until("it is answered or closed", () => socket.closed || responses >= count);
  socket.destroy();
  return received;
}

const patterns: readonly Pattern[] = [
  { connections: 4, pipelined: 5_000, rounds: 1 },
  { connections: 1, pipelined: 90, rounds: 20 },
  { connections: 200, pipelined: 10, rounds: 2 },
  { connections: 400, pipelined: 1, rounds: 3 },
];

test.each(patterns)(
  "$connections connections of $pipelined requests, $rounds times: a user gets the limit only",
  async (pattern) => {
    const [gateway = ""] = all.gateways;
    const bearer = await all.openSession(await all.createUser(`flood-${pattern.connections}-${pattern.pipelined}`));
    const request = `GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${bearer}\r\n\r\n`;
    const counts = await flood(gateway, request, pattern);
    const passed = Object.entries(counts).reduce((sum, [status, count]) => sum + (status === "429" ? 0 : count), 0);
    expect(passed).toBeLessThanOrEqual(1.2 * quota);
    expect(counts["200"] ?? 0).toBeLessThanOrEqual(quota);
    // A client that keeps sending after a 429 is disconnected, maybe without a response. Others get responses.
    if (pattern.pipelined < 1_000) {
      expect(counts["200"]).toBeGreaterThan(50);
      expect(counts["429"]).toBeGreaterThan(0);
    }
    // Others are served.
    const other = await all.openSession(await all.createUser(`bystander-${pattern.connections}-${pattern.pipelined}`));
    expect((await send(`${gateway}/v1/sessions`, { bearer: other })).status).toBe(200);
  },
);

test("anonymous callers of one address share the address's limit on all paths", async () => {
  const [gateway = ""] = all.gateways;
  const paths = ["/v1/me", "/nothing", "/v1/users/x/profile", "/"];
  const request = paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join("");
  const counts = await flood(gateway, request, { connections: 20, pipelined: 20, rounds: 3 });
  const passed = Object.entries(counts).reduce((sum, [status, count]) => sum + (status === "429" ? 0 : count), 0);
  expect(passed).toBeLessThanOrEqual(1.2 * quota);
  expect(counts["500"] ?? 0).toBe(0);
});
