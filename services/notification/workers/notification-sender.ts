/**
 * Sends PENDING notifications. Each is claimed by one process at a time and retried with backoff until it is SENT, or FAILED
 * with a row in notification_dlq. A process that crashes after the send leaves it to be sent again under the same id.
 *
 * A channel in this process (the log) needs no claims: notifications are sent in the transaction that inserts them as SENT.
 */
import { startSpan } from "@todoke/kernel/telemetry";
import { createWorker, describeError, type Outcome, type Worker, type WorkerOptions } from "@todoke/kernel/worker";
import type { Attempt, Send } from "../senders/send.ts";
import { type Notification, notifications } from "../store/notifications.ts";
import { countSettlements, recordSent, spanNames } from "../telemetry.ts";

export interface NotificationSenderOptions
  extends Pick<WorkerOptions<Notification>, "db" | "settings" | "wakeups" | "topic" | "onError"> {
  readonly send: Send;
}

export function notificationSender({ send, ...options }: NotificationSenderOptions): Worker {
  return createWorker<Notification>({
    ...options,
    name: "notification sender",
    claims: countSettlements(notifications),
    run: (jobs, leases) =>
      jobs.map((job) => sendOne(send, job, { attempt: job.claim.attempt, signal: leases.of(job).signal })),
  });
}

/** Sends a batch on a channel in this process. Rejects if one of them was not sent. */
export type SendBatch = (batch: readonly Notification[]) => Promise<void>;

export const sendBatch =
  (send: Send): SendBatch =>
  async (batch) => {
    const outcomes = await Promise.all(batch.map((notification) => sendOne(send, notification, firstAttempt)));
    send.flush?.();
    if (outcomes.some(({ kind }) => kind !== "done")) throw new Error("a notification was not sent");
  };

const firstAttempt: Attempt = { attempt: 1, signal: new AbortController().signal };

async function sendOne(send: Send, job: Notification, attempt: Attempt): Promise<Outcome> {
  const startedAt = performance.now();
  const span = startSendSpan(job);
  const sending = () => send(job, attempt);
  try {
    const outcome = await (span ? span.run(sending) : sending());
    span?.end(outcome.kind === "done" ? undefined : outcome.reason);
    if (outcome.kind === "done") recordSent((job.ageMs + performance.now() - startedAt) / 1_000);
    return outcome;
  } catch (error) {
    span?.end(describeError(error));
    throw error;
  }
}

function startSendSpan({ headers, eventId, eventType, notificationId }: Notification) {
  if (headers.traceparent === undefined) return undefined;
  const attributes = { notification_id: notificationId, event_id: eventId, event_type: eventType };
  return startSpan(spanNames.send, { kind: "producer", attributes, parent: headers });
}
