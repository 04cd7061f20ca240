/** Opens the bus for a URL. */
import { openNatsBus } from "@todoke/bus-nats";
import { openPostgresBus } from "@todoke/bus-postgres";
import { openRabbitmqBus } from "@todoke/bus-rabbitmq";
import type { EventBus } from "@todoke/kernel/bus";

export async function openBus(url: string, name: string): Promise<EventBus> {
  if (url.startsWith("nats:")) return openNatsBus({ url, name });
  return url.startsWith("amqp:") ? openRabbitmqBus({ url, name }) : openPostgresBus({ url });
}
