/** Sends mails from a table: each row is worked by one process at a time, and comes back when that process dies. */
import { claims } from "@todoke/kernel/claims";
import type { Db } from "@todoke/kernel/db";
import type { RetentionPolicy } from "@todoke/kernel/retention";
import { done, type Worker, worker } from "@todoke/kernel/worker";

export interface Email {
  readonly recipient: string;
  readonly body: string;
}

export const emails = claims<Email>({
  table: "emails",
  key: "email_id",
  keyType: "bigint",
  states: { ready: "QUEUED", claimed: "SENDING", done: "SENT", dead: "FAILED" },
  columns: { doneAt: "sent_at" },
  read: "c.recipient, c.body",
});

/** A mail server that dies after it has taken a mail gets it twice: hand it an id by which it can tell. */
export type Send = (email: Email, messageId: string, signal: AbortSignal) => Promise<void>;

/** `send` throws a Problem for what can never be sent; any other error is tried again. */
export function emailSender(db: Db, send: Send): Worker {
  return worker({
    name: "email sender",
    db,
    claims: emails,
    run: (jobs, leases) =>
      jobs.map(async (job) => {
        await send(job, `email-${job.claim.key}`, leases.of(job).signal);
        return done;
      }),
    settings: { attemptsMax: 3, backoff: { baseMs: 5_000, capMs: 60_000 } },
  });
}

const dayMs = 24 * 60 * 60 * 1_000;

export const sentEmails: RetentionPolicy = {
  table: "emails",
  finished: "status = 'SENT'",
  since: "sent_at",
  keepMs: 30 * dayMs,
};
