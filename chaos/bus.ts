/** Opens the bus of a run, with the times of a run. */
import { openNatsBus } from "@todoke/bus-nats";
import { openPostgresBus } from "@todoke/bus-postgres";
import { openRabbitmqBus } from "@todoke/bus-rabbitmq";
import { consumers } from "@todoke/contracts";
import type { EventBus } from "@todoke/kernel/bus";
import { auditor, type BusKind, leaseMs, publishTimeoutMs, workerSettings } from "./settings.ts";

/** How long the message broker waits for an ack. */
const ackWaitMs = leaseMs;

const allSubjects = [...new Set(Object.values(consumers).flat())];

export function openBus(kind: BusKind, options: { readonly url: string; readonly name: string }): Promise<EventBus> {
  switch (kind) {
    case "postgres":
      return openPostgresBus({ ...options, ackWaitMs, pollMs: workerSettings.pollMs });
    case "nats":
      return openNatsBus({ ...options, ackWaitMs, publishTimeoutMs });
    case "rabbitmq":
      return openRabbitmqBus({
        ...options,
        publishTimeoutMs,
        retryMs: 200,
        consumers: { ...consumers, [auditor]: allSubjects },
      });
  }
}

/** All consumed subjects. */
export const auditedSubjects: readonly string[] = allSubjects;
