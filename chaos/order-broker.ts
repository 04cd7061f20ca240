/**
 * The broker of orders in a run: the simulator as a process of its own, behind a wire. It takes whatever it is sent, as
 * often as it is sent, and one order in three goes wrong by itself. (The word "broker" is that of the bus here.)
 */
import { type SimulatorProcess, startSimulator } from "@todoke/orders/simulator/testing";

export type { SimulatorProcess as OrderBroker };

/** So long after its timestamp it takes an order: short, so that a doubt ends within a run. */
export const orderBrokerWindowMs = 2_000;
/** Shorter than the window, so that what comes late is still taken; longer than a sender waits and first asks. */
const slowMs = 1_800;

/** As simulator/testing.ts has it; for tests on this machine only. */
export const orderBrokerSecret = "a secret of the test";

export function openOrderBroker(): Promise<SimulatorProcess> {
  const times = ["--window-ms", String(orderBrokerWindowMs), "--slow-ms", String(slowMs)];
  return startSimulator("--no-dedupe", "--faults", "1", ...times);
}
