/** The bus of a run: the adapter that the URL's kind asks for, with the times of a run. */
import { openNatsBus } from "@todoke/bus-nats";
import { openPostgresBus } from "@todoke/bus-postgres";
import { openRabbitmqBus } from "@todoke/bus-rabbitmq";
import { consumers } from "@todoke/contracts";
import type { EventBus } from "@todoke/kernel/bus";
import { auditor, type BusKind, leaseMs, publishTimeoutMs, workerSettings } from "./settings.ts";

/** How long a broker waits for a silent consumer. */
const ackWaitMs = leaseMs;

const allSubjects = [...new Set(Object.values(consumers).flat())];

export function openBus(kind: BusKind, about: { readonly url: string; readonly name: string }): Promise<EventBus> {
  switch (kind) {
    case "postgres":
      return openPostgresBus({ ...about, ackWaitMs, pollMs: workerSettings.pollMs });
    case "nats":
      return openNatsBus({ ...about, ackWaitMs, publishTimeoutMs });
    case "rabbitmq":
      return openRabbitmqBus({
        ...about,
        publishTimeoutMs,
        retryMs: 200,
        consumers: { ...consumers, [auditor]: allSubjects },
      });
  }
}

/** What the auditor subscribes to: everything that anybody consumes. */
export const auditedSubjects: readonly string[] = allSubjects;
