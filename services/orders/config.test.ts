import { expect, test } from "vitest";
import { readSettings } from "./config.ts";

const read = (env: Record<string, string>) => {
  const errors: string[] = [];
  return { settings: readSettings(env, errors), errors };
};

test("defaults: paper broker, backoff 5, 10, 20, 40, 80, 160 s", () => {
  const { settings, errors } = read({});
  expect(errors).toEqual([]);
  expect(settings).toMatchObject({
    broker: { kind: "paper" },
    sender: { concurrency: 4, timeoutMs: 10_000, perSecond: 0, backoffMs: [5e3, 10e3, 20e3, 40e3, 80e3, 160e3] },
    ledgerMs: 48 * 3_600_000,
    keepMs: 90 * 24 * 3_600_000,
    reconciledWithinMs: null,
  });
});

test("every setting is read", () => {
  const { settings, errors } = read({
    ORDERS_BROKER: "http",
    ORDERS_BROKER_URL: "https://broker.example/api",
    ORDERS_BROKER_SECRET: "a secret of 24 characters",
    ORDERS_BROKER_DEDUPES: "true",
    ORDERS_BROKER_WINDOW_MS: "5000",
    ORDERS_BROKER_LIMITS_SLIPPAGE: "true",
    ORDERS_BROKER_TIMEOUT_MS: "2000",
    ORDERS_BROKER_PER_SECOND: "50",
    ORDERS_SENDER_CONCURRENCY: "8",
    ORDERS_BACKOFF_SECONDS: "0.1,2",
    ORDERS_INSTRUMENTS: "/etc/instruments.yaml",
    ORDERS_LEDGER_HOURS: "24",
    ORDERS_KEEP_DAYS: "30",
    ORDERS_REQUIRE_RECONCILIATION: "true",
  });
  expect(errors).toEqual([]);
  expect(settings).toMatchObject({
    broker: { kind: "http", dedupes: true, windowMs: 5_000, limitsSlippage: true, secret: "a secret of 24 characters" },
    instrumentsPath: "/etc/instruments.yaml",
    sender: { concurrency: 8, timeoutMs: 2_000, perSecond: 50, backoffMs: [100, 2_000] },
    reconciledWithinMs: 180_000,
  });
  expect(read({ ORDERS_PAPER_FAULTS: "lost-after=0.1, slow=1", ORDERS_PAPER_SEED: "7" }).settings.broker).toEqual({
    kind: "paper",
    seed: 7,
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
  [{ ORDERS_PAPER_FAULTS: "flood=1" }, "ORDERS_PAPER_FAULTS should be chances"],
  [{ ORDERS_PAPER_FAULTS: "slow=2" }, "ORDERS_PAPER_FAULTS should be chances"],
  [{ ORDERS_PAPER_SEED: "dice" }, "ORDERS_PAPER_SEED"],
  [{ ORDERS_BACKOFF_SECONDS: "5,x" }, "ORDERS_BACKOFF_SECONDS should be"],
  [{ ORDERS_BROKER_TIMEOUT_MS: "20000" }, "ORDERS_LEASE_MS should be at least twice"],
  [{ ORDERS_CHECKER_LEASE_MS: "5000" }, "ORDERS_CHECKER_LEASE_MS should be at least twice"],
  [{ ORDERS_CANCELLER_LEASE_MS: "5000" }, "ORDERS_CANCELLER_LEASE_MS should be at least twice"],
  [{ ORDERS_KEEP_DAYS: "1" }, "ORDERS_KEEP_DAYS should not be less"],
  [{ ORDERS_REQUIRE_RECONCILIATION: "yes" }, "ORDERS_REQUIRE_RECONCILIATION should be true or false"],
])("%j is one settings error", (env: Record<string, string>, error) => {
  const { errors } = read(env);
  expect(errors).toHaveLength(1);
  expect(errors[0]).toContain(error);
  expect(errors[0]).not.toContain("tiny");
});
