/** Runs a fault schedule, records what happened and heals every fault. */
import { setTimeout as sleep } from "node:timers/promises";
import type { FaultRecord } from "./evidence.ts";
import type { Step } from "./faults/fault.ts";
import { getFault } from "./faults/index.ts";
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
  // Faults of one target run one after the other, also when one takes longer than planned.
  const queues = new Map<string, Promise<void>>();
  const startedAt = performance.now();

  async function inject(step: Step): Promise<void> {
    const { n, fault, target, detail } = step;
    const pid = harness.slots.find(({ name }) => name === target)?.pid;
    const from = Date.now();
    const ended = await getFault(fault)
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
    queues.set(
      step.target,
      (queues.get(step.target) ?? Promise.resolve()).then(() => inject(step)),
    );
  }
  await Promise.all(queues.values());
  await healAll(harness);
  return records.sort((a, b) => a.n - b.n);
}

async function healAll({ slots, webhook, receiver }: Harness): Promise<void> {
  receiver.accept();
  for (const proxy of [webhook, ...slots.flatMap(({ database, busProxy }) => [database, busProxy])]) {
    proxy.disarm();
    proxy.stopDropping();
    proxy.delay(0);
  }
  for (const slot of slots) slot.resume();
  await Promise.all(slots.map((slot) => slot.up()));
}
