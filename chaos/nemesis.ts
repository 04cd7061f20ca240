/** Carries a schedule out, notes what really happened, and leaves everything whole. */
import { setTimeout as sleep } from "node:timers/promises";
import type { FaultRecord } from "./evidence.ts";
import type { Step } from "./faults/fault.ts";
import { faultNamed } from "./faults/index.ts";
import type { Harness } from "./harness.ts";

export interface NemesisOptions {
  readonly harness: Harness;
  readonly schedule: readonly Step[];
  readonly onFault: (record: FaultRecord) => void;
  readonly stopping: AbortSignal;
}

/** Resolves when the last fault is over and everything is up again. */
export async function runNemesis({ harness, schedule, onFault, stopping }: NemesisOptions): Promise<FaultRecord[]> {
  const records: FaultRecord[] = [];
  // What is done to one target is done one after the other, also when something took longer than planned.
  const lanes = new Map<string, Promise<void>>();
  const startedAt = performance.now();

  async function inject(step: Step): Promise<void> {
    const { n, fault, target, detail } = step;
    const pid = harness.slots.find(({ name }) => name === target)?.pid;
    const from = Date.now();
    const ended = await faultNamed(fault)
      .inject(harness, step)
      .then(
        (happened) => ({ happened }),
        (error) => ({ happened: true, failed: String(error) }),
      );
    const record = { n, fault, target, from, to: Date.now(), ...ended, ...(pid !== undefined && { pid }), detail };
    records.push(record);
    onFault(record);
  }

  for (const step of schedule) {
    await sleep(Math.max(0, step.atMs - (performance.now() - startedAt)), undefined, { signal: stopping }).catch(
      () => {},
    );
    if (stopping.aborted) break;
    lanes.set(
      step.target,
      (lanes.get(step.target) ?? Promise.resolve()).then(() => inject(step)),
    );
  }
  await Promise.all(lanes.values());
  await makeWhole(harness);
  return records.sort((a, b) => a.n - b.n);
}

async function makeWhole({ slots, webhook, receiver }: Harness): Promise<void> {
  receiver.accept();
  for (const wire of [webhook, ...slots.flatMap(({ database, busWire }) => [database, busWire])]) {
    wire.disarm();
    wire.listenAgain();
    wire.delay(0);
  }
  for (const slot of slots) slot.resume();
  await Promise.all(slots.map((slot) => slot.up()));
}
