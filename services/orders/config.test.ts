import { expect, test } from "vitest";
import { readSettings } from "./config.ts";

const read = (env: Record<string, string>) => {
  const faults: string[] = [];
  return { settings: readSettings(env, faults), faults };
};

test("without a word the paper broker is traded with, by the waits of the seed", () => {
  const { settings, faults } = read({});
  expect(faults).toEqual([]);
  expect(settings).toMatchObject({
    broker: { kind: "paper" },
    sender: { concurrency: 4, timeoutMs: 10_000, perSecond: 0, waitsMs: [5e3, 10e3, 20e3, 40e3, 80e3, 160e3] },
    ledgerMs: 48 * 3_600_000,
    keepMs: 90 * 24 * 3_600_000,
    reconciledWithinMs: null,
  });
});

test("all that can be said is read", () => {
  const { settings, faults } = read({
    ORDERS_BROKER: "http",
    ORDERS_BROKER_URL: "https://broker.example/api",
    ORDERS_BROKER_SECRET: "a secret of 24 characters",
    ORDERS_BROKER_DEDUPES: "true",
    ORDERS_BROKER_WINDOW_MS: "5000",
    ORDERS_BROKER_LIMITS_SLIPPAGE: "true",
    ORDERS_BROKER_TIMEOUT_MS: "2000",
    ORDERS_BROKER_RATE: "50",
    ORDERS_SENDER_CONCURRENCY: "8",
    ORDERS_RETRY_SECONDS: "0.1,2",
    ORDERS_INSTRUMENTS: "/etc/instruments.yaml",
    ORDERS_LEDGER_HOURS: "24",
    ORDERS_KEEP_DAYS: "30",
    ORDERS_REQUIRE_RECONCILIATION: "true",
  });
  expect(faults).toEqual([]);
  expect(settings).toMatchObject({
    broker: { kind: "http", dedupes: true, windowMs: 5_000, limitsSlippage: true, secret: "a secret of 24 characters" },
    instrumentsPath: "/etc/instruments.yaml",
    sender: { concurrency: 8, timeoutMs: 2_000, perSecond: 50, waitsMs: [100, 2_000] },
    reconciledWithinMs: 180_000,
  });
  expect(read({ ORDERS_PAPER_FAULTS: "lost-after=0.1, slow=1" }).settings.broker).toEqual({
    kind: "paper",
    faults: new Map([
      ["lost-after", 0.1],
      ["slow", 1],
    ]),
  });
});

test.each([
  [{ ORDERS_BROKER: "fax" }, "ORDERS_BROKER is"],
  [{ ORDERS_BROKER: "http", ORDERS_BROKER_SECRET: "a secret of 24 characters" }, "ORDERS_BROKER_URL should be"],
  [
    { ORDERS_BROKER: "http", ORDERS_BROKER_URL: "https://b.example", ORDERS_BROKER_SECRET: "tiny" },
    "ORDERS_BROKER_SECRET",
  ],
  [{ ORDERS_PAPER_FAULTS: "flood=1" }, "ORDERS_PAPER_FAULTS should name"],
  [{ ORDERS_PAPER_FAULTS: "slow=2" }, "ORDERS_PAPER_FAULTS should name"],
  [{ ORDERS_RETRY_SECONDS: "5,x" }, "ORDERS_RETRY_SECONDS should be"],
  [{ ORDERS_BROKER_TIMEOUT_MS: "20000" }, "ORDERS_LEASE_MS should be at least twice"],
  [{ ORDERS_KEEP_DAYS: "1" }, "ORDERS_KEEP_DAYS should be no less"],
  [{ ORDERS_REQUIRE_RECONCILIATION: "yes" }, "ORDERS_REQUIRE_RECONCILIATION should be true or false"],
])("%j is refused in one sentence", (env: Record<string, string>, fault) => {
  const { faults } = read(env);
  expect(faults).toHaveLength(1);
  expect(faults[0]).toContain(fault);
  expect(faults[0]).not.toContain("tiny");
});
