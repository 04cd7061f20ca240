/** What a bus may do and seldom does: store an event twice, deliver it twice, and hand events over in another order. */

import { serviceNamed } from "../services/index.ts";
import type { Shakes } from "../shaky-bus.ts";
import { type Fault, slotOf } from "./fault.ts";

const shaking = (name: string, what: keyof Shakes, role: "publishes" | "consumes"): Fault => ({
  name,
  weight: 4,
  targets: ({ processes }) => processes.filter(({ service }) => serviceNamed(service)[role]).map((each) => each.name),
  plan: (dice) => ({ forMs: 0, detail: { batches: dice.between(3, 20) } }),
  aftermathMs: 0,
  async inject(stage, step) {
    const slot = slotOf(stage, step);
    if (slot.pid === undefined) return false;
    slot.shake({ [what]: Number(step.detail.batches) });
    return true;
  },
});

export const deliveryFaults: readonly Fault[] = [
  shaking("published twice", "publishTwice", "publishes"),
  shaking("delivered twice", "deliverTwice", "consumes"),
  shaking("reordered", "reverse", "consumes"),
];
