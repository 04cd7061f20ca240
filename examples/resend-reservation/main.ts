/**
 * Sends the message of a reservation of points to the worker again, as a message broker does that delivers twice:
 *
 *   npm exec -- node examples/resend-reservation/main.ts <reservation_id> 10
 *
 * It reads the reservation from the service at POINTS with the header in AUTH, and publishes to the bus of reservations. Every
 * copy has an ID of its own: neither the bus nor the inbox recognizes it, so the worker has to.
 */
import { randomUUIDv7 } from "node:crypto";
import { openPostgresBus } from "@todoke/bus-postgres";
import { openRabbitmqBus } from "@todoke/bus-rabbitmq";
import { consumers, encodeEvent, rabbitmqQueues } from "@todoke/contracts";
import type { Envelope, EventBus } from "@todoke/kernel/bus";

const { POINTS = "", AUTH = "", POINTS_RESERVATION_BUS_URL, EVENT_BUS_URL, DATABASE_URL } = process.env;
const [id = "", times = "1"] = process.argv.slice(2);

function openBus(): Promise<EventBus> {
  const url = POINTS_RESERVATION_BUS_URL || EVENT_BUS_URL || DATABASE_URL || "";
  const name = "resend-reservation";
  if (!url.startsWith("amqp")) return openPostgresBus({ url, name });
  return openRabbitmqBus({ url, name, consumers: { points: consumers.points }, queues: rabbitmqQueues });
}

async function readReservation() {
  const [header = "", value = ""] = AUTH.split(": ");
  const response = await fetch(`${POINTS}/v1/points/reservations/${id}`, { headers: { [header]: value } });
  if (!response.ok) throw new Error(`reservation ${id}: ${await response.text()}`);
  return (await response.json()) as { user_id: string; point_amount: number; execute_at: string };
}

function toMessage({ user_id, point_amount, execute_at }: Awaited<ReturnType<typeof readReservation>>): Envelope {
  const eventId = randomUUIDv7();
  const eventType = "PointReservationDue";
  const head = { event_id: eventId, event_type: eventType, occurred_at: execute_at, version: "1" };
  const payload = encodeEvent(eventType, {
    ...head,
    user_id,
    reservation_id: id,
    point_amount: String(point_amount),
    execute_at,
  });
  return {
    eventId,
    eventType,
    subject: "points.reservations",
    aggregateKey: id,
    occurredAt: execute_at,
    headers: {},
    payload,
  };
}

const reservation = await readReservation();
await using bus = await openBus();
// One after the other: one call must not have two events of one aggregate.
for (let n = 0; n < Number(times); n++) {
  const [outcome] = await bus.publish([toMessage(reservation)]);
  if (outcome?.kind !== "done") throw new Error(`the bus did not store the message: ${JSON.stringify(outcome)}`);
}
console.log(`sent ${times} times`);
