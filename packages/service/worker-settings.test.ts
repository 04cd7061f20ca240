import { expect, test } from "vitest";
import { readWorkerSettings } from "./worker-settings.ts";

const read = (env: Record<string, string>, service = "points", worker = "relay") => {
  const errors: string[] = [];
  return { settings: readWorkerSettings({ service, worker }, env, errors), errors };
};

test("defaults: lease 30 s, poll 1 s, 10 attempts, backoff from 1 to 60 s, and the worker's own batch", () => {
  expect(read({}, "gateway-bff")).toEqual({
    settings: { leaseMs: 30_000, pollMs: 1_000, attemptsMax: 10, backoff: { baseMs: 1_000, capMs: 60_000 } },
    errors: [],
  });
});

test("a setting of the service applies to its workers only, and every error is reported", () => {
  const env = { POINTS_BATCH_MAX: "500", POINTS_POLL_MS: "soon", POINTS_ATTEMPTS_MAX: "0", ORDERS_LEASE_MS: "1" };
  const { settings, errors } = read(env);
  expect(settings).toMatchObject({ batchMax: 500, concurrency: 1_000 });
  expect(errors).toEqual([
    'POINTS_POLL_MS is "soon" and should be a whole number from 10 to 60000',
    'POINTS_ATTEMPTS_MAX is "0" and should be a whole number from 1 to 100',
  ]);
});

test("a setting of one worker overrides that of its service, for this worker only", () => {
  const env = {
    GATEWAY_BFF_ATTEMPTS_MAX: "5",
    GATEWAY_BFF_BACKOFF_BASE_MS: "200",
    GATEWAY_BFF_INBOX_ATTEMPTS_MAX: "50",
    GATEWAY_BFF_INBOX_BACKOFF_CAP_MS: "1",
    GATEWAY_BFF_INBOX_LEASE_MS: "2000",
    GATEWAY_BFF_INBOX_POLL_MS: "20",
    GATEWAY_BFF_INBOX_BATCH_MAX: "7",
  };
  expect(read(env, "gateway-bff", "inbox").settings).toEqual({
    batchMax: 7,
    concurrency: 14,
    leaseMs: 2_000,
    pollMs: 20,
    attemptsMax: 50,
    backoff: { baseMs: 200, capMs: 1 },
  });
  expect(read(env, "gateway-bff", "relay").settings).toEqual({
    leaseMs: 30_000,
    pollMs: 1_000,
    attemptsMax: 5,
    backoff: { baseMs: 200, capMs: 60_000 },
  });
});

test("an error in a worker's setting names the worker's variable", () => {
  expect(read({ POINTS_RELAY_LEASE_MS: "1", POINTS_LEASE_MS: "5000" }).errors).toEqual([
    'POINTS_RELAY_LEASE_MS is "1" and should be a whole number from 1000 to 86400000',
  ]);
});
