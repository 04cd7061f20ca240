/** How long a service keeps finished rows of the kernel's tables. */
import type { Env } from "@todoke/http";
import { inboxRetentionError } from "@todoke/kernel/retention";
import { envName, integerReader } from "./settings.ts";

export interface RetentionSettings {
  /** PUBLISHED events: <SERVICE>_OUTBOX_KEEP_DAYS. */
  readonly publishedMs: number;
  /** Idempotency keys and their responses: <SERVICE>_IDEMPOTENCY_KEEP_HOURS. */
  readonly idempotencyMs: number;
  /** Processed events and attempts of the inbox: <SERVICE>_PROCESSED_KEEP_DAYS. */
  readonly processedMs: number;
  /** RESOLVED dead letters of the inbox: <SERVICE>_INBOX_DLQ_KEEP_DAYS. */
  readonly resolvedMs: number;
  /** Copies of discarded rows: <SERVICE>_DISCARDED_KEEP_DAYS, and at least as long as events, with which audits compare them. */
  readonly discardedMs: number;
}

const hourMs = 60 * 60 * 1_000;
const dayMs = 24 * hourMs;
const daysBounds = [1, 3_650] as const;

/**
 * The inbox must outlast every redelivery: the buses keep a message for EVENT_BUS_KEEP_DAYS, and EVENT_REDRIVE_DAYS is how
 * long it can be published again, from the outboxes of all services. An event that arrives later would take effect twice.
 */
export function readRetentionSettings(
  { name: service, emits, consumes }: { readonly name: string; readonly emits: boolean; readonly consumes: boolean },
  env: Env,
  errors: string[],
): RetentionSettings {
  const integer = integerReader(env, errors);
  const days = (name: string, byDefault: number) => integer(name, byDefault, daysBounds) * dayMs;
  const [published, processed] = [envName(service, "OUTBOX_KEEP_DAYS"), envName(service, "PROCESSED_KEEP_DAYS")];
  const publishedMs = days(published, 7);
  const processedMs = days(processed, 14);
  const redriveMs = days("EVENT_REDRIVE_DAYS", 7);
  if (emits && publishedMs > redriveMs)
    errors.push(
      `${published} is more than EVENT_REDRIVE_DAYS (${redriveMs / dayMs}): an older event could be published again, and ` +
        "inboxes that no longer know it would apply it twice",
    );
  const error = inboxRetentionError({ inboxMs: processedMs, brokerMs: days("EVENT_BUS_KEEP_DAYS", 7), redriveMs });
  if (consumes && error) errors.push(`${processed} is too small: ${error}`);
  return {
    publishedMs,
    idempotencyMs: integer(envName(service, "IDEMPOTENCY_KEEP_HOURS"), 24, [1, 8_760]) * hourMs,
    processedMs,
    resolvedMs: days(envName(service, "INBOX_DLQ_KEEP_DAYS"), 30),
    discardedMs: Math.max(days(envName(service, "DISCARDED_KEEP_DAYS"), 30), publishedMs),
  };
}
