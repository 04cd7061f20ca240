/** Reads the whole bus after the system is quiet, in publication order. */
import { setTimeout as sleep } from "node:timers/promises";
import { done } from "@todoke/kernel/worker";
import { auditedSubjects, openBus } from "./bus.ts";
import type { Audited } from "./evidence.ts";
import { auditor, type BusKind } from "./settings.ts";

/** The bus is read completely after this silence: longer while expected events are missing. */
const silenceMs = { missing: 20_000, complete: 500 };

export async function audit(
  kind: BusKind,
  options: { readonly url: string; readonly expected: number },
): Promise<Audited[]> {
  await using bus = await openBus(kind, { url: options.url, name: "chaos auditor" });
  const found: Audited[] = [];
  const seen = new Set<string>();
  let lastDeliveryAt = performance.now();
  await using _ = await bus.subscribe({
    consumer: auditor,
    subjects: auditedSubjects,
    async handle(deliveries) {
      for (const { eventId, aggregateKey } of deliveries) {
        found.push({ eventId, aggregateKey });
        seen.add(eventId);
      }
      lastDeliveryAt = performance.now();
      return deliveries.map(() => done);
    },
  });
  lastDeliveryAt = performance.now();
  const silenceMsMax = () => (seen.size >= options.expected ? silenceMs.complete : silenceMs.missing);
  while (performance.now() - lastDeliveryAt < silenceMsMax()) await sleep(50);
  return found;
}
