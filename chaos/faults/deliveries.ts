/** Bus faults: an event is stored twice, delivered twice, or delivered in another order. */

import type { BusFaults } from "../flaky-bus.ts";
import { getService } from "../services/index.ts";
import { type Fault, findSlot } from "./fault.ts";

const busFault = (name: string, what: keyof BusFaults, role: "publishes" | "consumes"): Fault => ({
  name,
  weight: 4,
  targets: ({ processes }) => processes.filter(({ service }) => getService(service)[role]).map((each) => each.name),
  plan: (random) => ({ forMs: 0, detail: { batches: random.between(3, 20) } }),
  aftermathMs: 0,
  async inject(harness, step) {
    const slot = findSlot(harness, step);
    if (slot.pid === undefined) return false;
    slot.disturb({ [what]: Number(step.detail.batches) });
    return true;
  },
});

export const deliveryFaults: readonly Fault[] = [
  busFault("published twice", "publishTwice", "publishes"),
  busFault("delivered twice", "deliverTwice", "consumes"),
  busFault("reordered", "reverse", "consumes"),
];
