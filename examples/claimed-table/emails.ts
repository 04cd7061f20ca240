/** Sends emails from a table. One worker at a time has a row; a crashed worker's rows become claimable again. */
import { createClaims } from "@todoke/kernel/claims";
import type { Db } from "@todoke/kernel/db";
import { createDeadLetters } from "@todoke/kernel/dead-letters";
import type { RetentionPolicy } from "@todoke/kernel/retention";
import { createWorker, done, type Worker } from "@todoke/kernel/worker";

export interface Email {
  readonly recipient: string;
  readonly body: string;
}

export const emails = createClaims<Email>({
  table: "emails",
  key: "email_id",
  keyType: "bigint",
  states: { ready: "QUEUED", claimed: "SENDING", done: "SENT", dead: "FAILED" },
  columns: { doneAt: "sent_at" },
  select: "c.recipient, c.body",
});

/** An email is sent twice if the worker crashes before it settles the row. The message ID lets the server deduplicate. */
export type Send = (email: Email, messageId: string, signal: AbortSignal) => Promise<void>;

/** `send` throws a Problem if the email can never be sent; any other error is retried. */
export function emailSender(db: Db, send: Send): Worker {
  return createWorker({
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

/** FAILED emails, for operators to list, inspect and redrive. */
export const failedEmails = createDeadLetters<{ readonly body: string }>({
  claims: emails,
  from: "(select *, 'email' as event_type from emails) r",
  isDead: "r.status = 'FAILED'",
  id: "r.email_id",
  cursor: "r.email_id",
  about: "r.recipient",
  since: "r.next_retry_at",
  detail: "r.body",
});

const dayMs = 24 * 60 * 60 * 1_000;

export const sentEmails: RetentionPolicy = {
  table: "emails",
  finished: "status = 'SENT'",
  since: "sent_at",
  keepMs: 30 * dayMs,
};
