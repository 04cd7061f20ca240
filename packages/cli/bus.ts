/** Opens the event bus of a URL. The scheme selects the adapter; only its code is loaded. */
import { consumers } from "@todoke/contracts";
import type { BusLog, EventBus } from "@todoke/kernel/bus";
import type { AppliedMigration } from "@todoke/kernel/db";
import { SettingsError } from "./errors.ts";

interface BusOptions extends Partial<BusLog> {
  /** How long the bus keeps a message. Queues of RabbitMQ keep one until it is consumed. */
  readonly keepMs?: number;
}

export async function openBus(url: string, name: string, options: BusOptions = {}): Promise<EventBus> {
  const { keepMs, ...log } = options;
  switch (URL.parse(url)?.protocol) {
    case "nats:":
    case "tls:": {
      const { openNatsBus } = await import("@todoke/bus-nats");
      return openNatsBus({ url, name, ...(keepMs !== undefined && { streams: { maxAgeMs: keepMs } }) });
    }
    case "amqp:":
    case "amqps:": {
      const { openRabbitmqBus } = await import("@todoke/bus-rabbitmq");
      // RabbitMQ stores an event only in existing queues, so every consumer gets one before the first publish.
      return openRabbitmqBus({ url, name, consumers });
    }
    case "postgres:":
    case "postgresql:": {
      const { openPostgresBus } = await import("@todoke/bus-postgres");
      return openPostgresBus({ url, name, ...(keepMs !== undefined && { keepMs }), ...log });
    }
    default:
      throw new SettingsError(["EVENT_BUS_URL should begin with nats://, amqp:// or postgres://"]);
  }
}

/** Runs the missing migrations of a bus in PostgreSQL and returns them; other buses have none. */
export async function migrateBus(
  url: string | undefined,
  options: { readonly dryRun: boolean },
): Promise<readonly AppliedMigration[]> {
  const protocol = URL.parse(url ?? "")?.protocol;
  if (url === undefined || (protocol !== "postgres:" && protocol !== "postgresql:")) return [];
  const { migratePostgresBus } = await import("@todoke/bus-postgres");
  return migratePostgresBus(url, options);
}
