/** Opens the event bus of a URL. The scheme selects the adapter; only its code is loaded. */
import { consumers, rabbitmqQueues as queues } from "@todoke/contracts";
import type { BusLog, ConsumerLag, EventBus } from "@todoke/kernel/bus";
import type { AppliedMigration } from "@todoke/kernel/db";
import { parseServerUrl } from "@todoke/kernel/server-url";
import { SettingsError } from "./errors.ts";

interface BusOptions extends Partial<BusLog> {
  /** How long the bus keeps a message. Queues of RabbitMQ keep one until it is consumed. */
  readonly keepMs?: number;
  /** The subjects that are published there; all by default. */
  readonly emits?: readonly string[];
}

export async function openBus(url: string, name: string, options: BusOptions = {}): Promise<EventBus> {
  const { keepMs, emits, ...to } = options;
  const log = (message: string, error?: unknown) =>
    error === undefined ? to.onInfo?.(message) : to.onError?.(new Error(message, { cause: error }));
  switch (parseServerUrl(url)?.scheme) {
    case "nats":
    case "tls": {
      const { openNatsBus } = await import("@todoke/bus-nats");
      return openNatsBus({ url, name, log, ...(keepMs !== undefined && { streams: { maxAgeMs: keepMs } }) });
    }
    case "amqp":
    case "amqps": {
      const { openRabbitmqBus } = await import("@todoke/bus-rabbitmq");
      return openRabbitmqBus({ url, name, log, consumers: consumersOf(emits), queues });
    }
    case "postgres":
    case "postgresql": {
      const { openPostgresBus } = await import("@todoke/bus-postgres");
      return openPostgresBus({ url, name, ...(keepMs !== undefined && { keepMs }), ...to });
    }
    default:
      throw new SettingsError(["The URL of a bus should begin with nats://, amqp:// or postgres://"]);
  }
}

/**
 * The consumers of the subjects. RabbitMQ stores an event only in existing queues, so each of them gets its queue before the
 * first publish. A queue for a subject that is published elsewhere would stay empty, or fill without a reader.
 */
function consumersOf(emits: readonly string[] | undefined): Record<string, readonly string[]> {
  const isPublished = (subject: string) => emits?.includes(subject) ?? true;
  const published = Object.entries(consumers).map(([name, subjects]) => [name, subjects.filter(isPublished)] as const);
  return Object.fromEntries(published.filter(([, subjects]) => subjects.length > 0));
}

/** Counts the messages that wait for a consumer at the bus; undefined if the bus does not exist yet. Changes nothing there. */
export async function readLag(
  url: string,
  { consumer, subjects }: { readonly consumer: string; readonly subjects: readonly string[] },
): Promise<ConsumerLag | undefined> {
  if (/^postgres(ql)?:/.test(url)) {
    const { readPostgresBusLag } = await import("@todoke/bus-postgres");
    return readPostgresBusLag(url, consumer);
  }
  await using bus = await openBus(url, "todoke doctor");
  return bus.readLag?.(consumer, subjects);
}

/** The deliveries of these events that are not done; undefined if the bus cannot tell. Changes nothing there. */
export async function readWaitingDeliveries(url: string, eventIds: readonly string[]) {
  if (!/^postgres(ql)?:/.test(url)) return undefined;
  const { readPostgresDeliveries } = await import("@todoke/bus-postgres");
  return readPostgresDeliveries(url, eventIds);
}

/** Runs the missing migrations of a bus in PostgreSQL and returns them; other buses have none. */
export async function migrateBus(
  url: string,
  options: { readonly dryRun: boolean },
): Promise<readonly AppliedMigration[]> {
  if (!/^postgres(ql)?:/.test(url)) return [];
  const { migratePostgresBus } = await import("@todoke/bus-postgres");
  return migratePostgresBus(url, options);
}
