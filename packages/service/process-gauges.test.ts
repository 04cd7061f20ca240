import { emptyResource } from "@opentelemetry/resources";
import { recordTelemetry } from "@todoke/http/testing";
import { createMeters, gauge } from "@todoke/kernel/telemetry";
import { expect, test } from "vitest";
import { watchProcess } from "./process-gauges.ts";
import { prometheusText } from "./prometheus.ts";

const { metrics } = recordTelemetry();

/** Lines of /metrics that begin with this. */
const samples = async (name: string) =>
  prometheusText(
    (await metrics()).resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics),
    emptyResource(),
  )
    .split("\n")
    .filter((line) => line.startsWith(name));

const { observeGauges } = createMeters("test", {
  "test.backlog": gauge("{row}", "Rows"),
  "test.age": gauge("s", "Age"),
});

const backlog = (read: () => Promise<number>, everyMs?: number, onError?: (error: unknown) => void) =>
  observeGauges({
    gauges: ["test.backlog"],
    read: async () => [{ name: "test.backlog", value: await read() }],
    ...(everyMs !== undefined && { intervalMs: everyMs }),
    ...(onError && { onError }),
  });

test("gauges are read at most once in five seconds", async () => {
  let reads = 0;
  await using _ = backlog(async () => ++reads);
  await Promise.all(Array.from({ length: 20 }, () => samples("test_backlog")));
  expect(await samples("test_backlog")).toEqual(["test_backlog 1"]);
  expect(reads).toBe(1);
});

test("a gauge is read again after its interval, and not after it is disposed", async () => {
  let reads = 0;
  {
    await using _ = backlog(async () => ++reads, 0);
    await samples("test_backlog");
    expect(await samples("test_backlog")).toEqual(["test_backlog 2"]);
  }
  await samples("test_backlog");
  expect(reads).toBe(2);
});

test("an error in one gauge is reported, and the others are still there", async () => {
  const errors: unknown[] = [];
  await using _ = backlog(
    () => Promise.reject(new Error("no database")),
    0,
    (error) => errors.push(error),
  );
  await using fine = observeGauges({
    gauges: ["test.age"],
    read: () => [{ name: "test.age", value: 1.5 }],
  });
  expect(await samples("test_age")).toEqual(["test_age_seconds 1.5"]);
  expect(String(errors[0])).toBe("Error: reading test.backlog failed");
  await fine[Symbol.asyncDispose]();
});

test("a process has gauges of its pool and its event loop delay", async () => {
  const db = { totalCount: 5, idleCount: 2, waitingCount: 7 };
  await using _ = watchProcess({ service: "points", db, loopDelayMs: () => 12 });
  expect([...(await samples("db_client")), ...(await samples("nodejs"))]).toEqual([
    'db_client_connection_count{db_client_connection_pool_name="points",db_client_connection_state="idle"} 2',
    'db_client_connection_count{db_client_connection_pool_name="points",db_client_connection_state="used"} 3',
    'db_client_connection_pending_requests{db_client_connection_pool_name="points"} 7',
    "nodejs_eventloop_delay_p99_seconds 0.012",
  ]);
});
