/**
 * Sends notifications. Each is claimed by one process at a time and retried with backoff until it is SENT, or FAILED with a
 * row in notification_dlq. A process that crashes after the send leaves it to be sent again under the same id.
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
import type { Send } from "../senders/send.ts";
import { type Notification, notifications } from "../store/notifications.ts";
import { countSettlements, recordSent, spanNames } from "../telemetry.ts";

export interface NotificationSenderOptions
  extends Pick<WorkerOptions<Notification>, "db" | "settings" | "wakeups" | "topic" | "onError"> {
  readonly send: Send;
}

export function notificationSender({ send, ...options }: NotificationSenderOptions): Worker {
  async function sendOne(job: Claimed<Notification>, lease: Lease): Promise<Outcome> {
    const startedAt = performance.now();
    const span = startSendSpan(job);
    const sending = () => send(job, { attempt: job.claim.attempt, signal: lease.signal });
    try {
      const outcome = await (span ? span.run(sending) : sending());
      span?.end(outcome.kind === "done" ? undefined : outcome.why);
      if (outcome.kind === "done") recordSent((job.ageMs + performance.now() - startedAt) / 1_000);
      return outcome;
    } catch (error) {
      span?.end(describeError(error));
      throw error;
    }
  }

  return worker<Notification>({
    ...options,
    name: "notification sender",
    claims: countSettlements(notifications),
    run: (jobs, leases) => jobs.map((job) => sendOne(job, leases.of(job))),
  });
}

function startSendSpan({ headers, eventId, eventType, notificationId }: Notification) {
  if (headers.traceparent === undefined) return undefined;
  const attributes = { notification_id: notificationId, event_id: eventId, event_type: eventType };
  return startSpan(spanNames.send, { kind: "producer", attributes, parent: headers });
}
