/** All faults. Add a new one to one of these lists. */
import { deliveryFaults } from "./deliveries.ts";
import { engineFaults } from "./engines.ts";
import type { Fault } from "./fault.ts";
import { networkFaults } from "./network.ts";
import { processFaults } from "./processes.ts";

export const faults: readonly Fault[] = [...processFaults, ...networkFaults, ...engineFaults, ...deliveryFaults];

export function getFault(name: string): Fault {
  const found = faults.find((fault) => fault.name === name);
  if (!found) throw new Error(`unknown fault "${name}"; known: ${faults.map((fault) => fault.name).join(", ")}`);
  return found;
}
