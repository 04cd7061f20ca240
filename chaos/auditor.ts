/**
 * Reads everything that is on the bus once nothing moves any more, in its order. What is read then is what the bus kept,
 * and its order that of publication: nothing is handed over twice or late in the quiet.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { done } from "@todoke/kernel/worker";
import { auditedSubjects, openBus } from "./bus.ts";
import type { Audited } from "./evidence.ts";
import { auditor, type BusKind } from "./settings.ts";

/** When so long nothing has come that was expected, or at all, the bus has no more. */
const silenceMs = { missing: 20_000, complete: 500 };

export async function audit(
  kind: BusKind,
  about: { readonly url: string; readonly expected: number },
): Promise<Audited[]> {
  await using bus = await openBus(kind, { url: about.url, name: "chaos auditor" });
  const found: Audited[] = [];
  const seen = new Set<string>();
  let heardAt = performance.now();
  await using _ = await bus.subscribe({
    consumer: auditor,
    subjects: auditedSubjects,
    async handle(deliveries) {
      for (const { eventId, aggregateKey } of deliveries) {
        found.push({ eventId, aggregateKey });
        seen.add(eventId);
      }
      heardAt = performance.now();
      return deliveries.map(() => done);
    },
  });
  heardAt = performance.now();
  const patience = () => (seen.size >= about.expected ? silenceMs.complete : silenceMs.missing);
  while (performance.now() - heardAt < patience()) await sleep(50);
  return found;
}
