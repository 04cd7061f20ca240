/** Sends to the log: ids only and never the text, so that readers of the log cannot read users' notifications. */
import { logFields } from "@todoke/kernel/telemetry";
import { done } from "@todoke/kernel/worker";
import type { Send } from "./send.ts";

export interface Log {
  info(fields: object, message: string): void;
  /** Writes buffered lines, if there are any. */
  flush?(): void;
}

export function logSender(log: Log): Send {
  const send: Send = async ({ notificationId, eventId, userId, eventType, headers }, { attempt }) => {
    log.info(
      {
        notification_id: notificationId,
        user_id: userId,
        [logFields.eventId]: eventId,
        [logFields.eventType]: eventType,
        [logFields.attempt]: attempt,
        ...(headers.trace_id !== undefined && { [logFields.traceId]: headers.trace_id }),
      },
      "notification sent",
    );
    return done;
  };
  return Object.assign(send, { isLocal: true, flush: () => log.flush?.() } as const);
}
