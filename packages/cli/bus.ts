/** Opens the event bus that a URL names. Its scheme picks the adapter, and only that adapter's code is loaded. */
import type { EventBus } from "@todoke/kernel/bus";
import { Misconfigured } from "./faults.ts";

export async function openBus(url: string, name: string): Promise<EventBus> {
  switch (URL.parse(url)?.protocol) {
    case "nats:":
    case "tls:": {
      const { openNatsBus } = await import("@todoke/bus-nats");
      return openNatsBus({ url, name });
    }
    case "amqp:":
    case "amqps:": {
      const { openRabbitmqBus } = await import("@todoke/bus-rabbitmq");
      return openRabbitmqBus({ url, name });
    }
    case "postgres:":
    case "postgresql:": {
      const { openPostgresBus } = await import("@todoke/bus-postgres");
      return openPostgresBus({ url, name });
    }
    default:
      throw new Misconfigured(["EVENT_BUS_URL should begin with nats://, amqp:// or postgres://"]);
  }
}
