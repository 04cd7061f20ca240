/**
 * Sends notifications. Each is held by one process at a time, tried again with backoff, and in the end SENT, or FAILED
 * with its row in notification_dlq. A process that dies after the receiver has heard sends once more, with the same id.
 */
import type { Claimed } from "@todoke/kernel/claims";
import { startSpan } from "@todoke/kernel/telemetry";
import {
  describeError,
  type Lease,
  type Outcome,
  type Worker,
  type WorkerOptions,
  worker,
} from "@todoke/kernel/worker";
import type { Send } from "../senders/index.ts";
import { type Notification, notifications } from "../store/notifications.ts";
import { counted, spanNames, tellSent } from "../telemetry.ts";

export interface NotificationSenderOptions
  extends Pick<WorkerOptions<Notification>, "db" | "settings" | "wakeups" | "topic" | "onError"> {
  readonly send: Send;
}

export function notificationSender({ send, ...options }: NotificationSenderOptions): Worker {
  async function sendOne(job: Claimed<Notification>, lease: Lease): Promise<Outcome> {
    const startedAt = performance.now();
    const span = spanOf(job);
    const sending = () => send(job, { attempt: job.claim.attempt, signal: lease.signal });
    try {
      const outcome = await (span ? span.run(sending) : sending());
      span?.end("why" in outcome ? outcome.why : undefined);
      if (outcome.kind === "done") tellSent((job.ageMs + performance.now() - startedAt) / 1_000);
      return outcome;
    } catch (error) {
      span?.end(describeError(error));
      throw error;
    }
  }

  return worker<Notification>({
    ...options,
    name: "notification sender",
    claims: counted(notifications),
    run: (jobs, leases) => jobs.map((job) => sendOne(job, leases.of(job))),
  });
}

function spanOf({ headers, eventId, eventType, notificationId }: Notification) {
  if (headers.traceparent === undefined) return undefined;
  const attributes = { notification_id: notificationId, event_id: eventId, event_type: eventType };
  return startSpan(spanNames.send, { kind: "producer", attributes, parent: headers });
}
