/** The order broker of a run: the simulator as a process, without deduplication; every third order meets a fault. */
import { type SimulatorProcess, startSimulator } from "@todoke/orders/simulator/testing";

export type { SimulatorProcess as OrderBroker };

/** How long after its timestamp the broker accepts an order: short, so that unresolved orders are resolved within a run. */
export const orderBrokerWindowMs = 2_000;
/** Shorter than the window, so that a slow order is still taken; longer than a sender's timeout and first check. */
const slowMs = 1_800;

/** As simulator/testing.ts has it; for tests on this machine only. */
export const orderBrokerSecret = "a secret of the test";

export function openOrderBroker(): Promise<SimulatorProcess> {
  const times = ["--window-ms", String(orderBrokerWindowMs), "--slow-ms", String(slowMs)];
  return startSimulator("--no-dedupe", "--faults", "1", ...times);
}
