/** An event about a user, as it follows from what the user has become. */
import { randomUUIDv7 } from "node:crypto";
import { type EventType, events } from "@todoke/contracts";
import type { NewEvent } from "@todoke/kernel/outbox";
import { traceHeaders } from "@todoke/kernel/telemetry";
import type { UserView } from "./store/users.ts";

export type AccountEvent = Exclude<Extract<EventType, `Account${string}`>, "AccountCreated">;

/** `user` is as it is after the change; its row is locked. */
export function accountEvent(eventType: AccountEvent, user: UserView, said: object): NewEvent {
  const eventId = randomUUIDv7();
  const { trace_id } = traceHeaders();
  return {
    eventId,
    eventType,
    subject: events[eventType].subject,
    aggregateKey: user.user_id,
    version: user.version,
    payload: {
      event_id: eventId,
      event_type: eventType,
      occurred_at: user.updated_at,
      version: String(user.version),
      user_id: user.user_id,
      status: user.status,
      ...(user.roles.length > 0 && { roles: user.roles.join(",") }),
      ...(user.suspended_until !== undefined && { suspended_until: user.suspended_until }),
      ...(trace_id !== undefined && { trace_id }),
      ...said,
    },
  };
}
