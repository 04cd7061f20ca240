import { expect, test } from "vitest";
import { readWorkerSettings } from "./worker-settings.ts";

test("without settings a service's workers are as the design says, and each keeps the batch that suits it", () => {
  const faults: string[] = [];
  expect(readWorkerSettings("gateway-bff", {}, faults)).toEqual({
    leaseMs: 30_000,
    pollMs: 1_000,
    attemptsMax: 10,
    backoff: { baseMs: 1_000, capMs: 60_000 },
  });
  expect(faults).toEqual([]);
});

test("an operator's word counts for the one service that it names, and every fault is told", () => {
  const faults: string[] = [];
  const env = { POINTS_BATCH_MAX: "500", POINTS_POLL_MS: "soon", POINTS_ATTEMPTS_MAX: "0", ORDERS_LEASE_MS: "1" };
  expect(readWorkerSettings("points", env, faults)).toMatchObject({ batchMax: 500, concurrency: 1_000 });
  expect(faults).toEqual([
    'POINTS_POLL_MS is "soon" and should be a whole number from 10 to 60000',
    'POINTS_ATTEMPTS_MAX is "0" and should be a whole number from 1 to 100',
  ]);
});
