/** The payloads of the account events. They carry no personal data. */
import { randomUUIDv7 } from "node:crypto";
import { type EventType, events } from "@todoke/contracts";
import { utcText } from "@todoke/kernel/db";
import type { NewEvent } from "@todoke/kernel/outbox";
import { traceHeaders } from "@todoke/kernel/telemetry";
import type { UserView } from "../store/users.ts";

/** AccountCreated as SQL over the new row of `users`: the statement that inserts the user also inserts the event. */
export const accountCreated = {
  subject: events.AccountCreated.subject,
  eventType: "'AccountCreated'",
  aggregateKey: "user_id",
  version: "version",
  occurredAt: utcText("created_at"),
  fields: { user_id: "user_id", status: "'ACTIVE'", roles: "'USER'" },
};

export type AccountEvent = Exclude<Extract<EventType, `Account${string}`>, "AccountCreated">;

/** `user` is the user after the change, read with its row locked. */
export function accountEvent(eventType: AccountEvent, user: UserView, fields: object = {}): NewEvent {
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
      ...fields,
    },
  };
}
