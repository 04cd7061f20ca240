/** Every fault there is. A new one is an entry in one of these lists. */
import { deliveryFaults } from "./deliveries.ts";
import { engineFaults } from "./engines.ts";
import type { Fault } from "./fault.ts";
import { networkFaults } from "./network.ts";
import { processFaults } from "./processes.ts";

export const faults: readonly Fault[] = [...processFaults, ...networkFaults, ...engineFaults, ...deliveryFaults];

export function faultNamed(name: string): Fault {
  const found = faults.find((fault) => fault.name === name);
  if (!found) throw new Error(`"${name}" is no fault; there are ${faults.map((fault) => fault.name).join(", ")}`);
  return found;
}
