/** What a bus may do and seldom does: store an event twice, deliver it twice, and hand events over in another order. */

import type { BusFaults } from "../flaky-bus.ts";
import { serviceNamed } from "../services/index.ts";
import { type Fault, slotOf } from "./fault.ts";

const busFault = (name: string, what: keyof BusFaults, role: "publishes" | "consumes"): Fault => ({
  name,
  weight: 4,
  targets: ({ processes }) => processes.filter(({ service }) => serviceNamed(service)[role]).map((each) => each.name),
  plan: (random) => ({ forMs: 0, detail: { batches: random.between(3, 20) } }),
  aftermathMs: 0,
  async inject(harness, step) {
    const slot = slotOf(harness, step);
    if (slot.pid === undefined) return false;
    slot.disturbBus({ [what]: Number(step.detail.batches) });
    return true;
  },
});

export const deliveryFaults: readonly Fault[] = [
  busFault("published twice", "publishTwice", "publishes"),
  busFault("delivered twice", "deliverTwice", "consumes"),
  busFault("reordered", "reverse", "consumes"),
];
