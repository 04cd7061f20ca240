/**
 * Sends to a URL as Standard Webhooks (https://www.standardwebhooks.com) describes. The webhook-id is the notification's id
 * at every attempt, so that a receiver can detect a duplicate; timestamp and signature are new each time.
 */
import { type CircuitBreaker, circuitBreaker } from "@todoke/http";
import { type Backoff, backoffMs, dead, done, type Outcome, release, retry } from "@todoke/kernel/worker";
import type { Notification } from "../store/notifications.ts";
import { httpPost, type PostResponse, type Resolve } from "./http-post.ts";
import type { Send } from "./send.ts";
import { signatureHeaders } from "./signature.ts";

/** The options of one receiver. */
export interface WebhookOptions {
  readonly url: URL;
  readonly secret: Uint8Array;
  /** Allows addresses that are not public. */
  readonly allowPrivate: boolean;
  readonly backoff: Backoff;
  readonly timeoutMs?: number;
  /** Bounds the concurrent sends, so that a hanging receiver does not block the others. */
  readonly inFlightMax?: number;
  readonly breaker?: CircuitBreaker;
  readonly resolve?: Resolve;
}

// A receiver's Retry-After is honoured up to here, so that a wrong header does not delay a notification for days.
const retryAfterMaxMs = 60 * 60 * 1_000;

export interface WebhooksOptions extends WebhookOptions {
  /** The URLs of event types that have a receiver of their own; all others go to `url`. */
  readonly urls: ReadonlyMap<string, URL>;
  /** How many notifications the sender sends at once. */
  readonly concurrency: number;
}

/** One sender per URL. Each has its own breaker and its share of the concurrency, so that a dead one slows no other. */
export function webhookSenders({ urls, concurrency, ...options }: WebhooksOptions): Send {
  const hrefs = new Set([options.url, ...urls.values()].map(({ href }) => href));
  const inFlightMax = Math.ceil(concurrency / hrefs.size);
  const senders = new Map(
    [...hrefs].map((href) => [href, webhookSender({ ...options, url: new URL(href), inFlightMax })]),
  );
  return (notification, attempt) => {
    const { href } = urls.get(notification.eventType) ?? options.url;
    return (senders.get(href) as Send)(notification, attempt);
  };
}

const busyDelayMs = 250;

export function webhookSender(options: WebhookOptions): Send {
  const { url, inFlightMax = Number.POSITIVE_INFINITY } = options;
  const send = sendTo(options);
  let inFlight = 0;
  return async (notification, attempt) => {
    if (inFlight >= inFlightMax) return release(`${url.host} has ${inFlight} requests in flight`, busyDelayMs);
    inFlight++;
    try {
      return await send(notification, attempt);
    } finally {
      inFlight--;
    }
  };
}

function sendTo(options: WebhookOptions): Send {
  const { url, secret, allowPrivate, backoff, timeoutMs = 15_000, breaker = circuitBreaker() } = options;
  const target = { url, allowPrivate, timeoutMs, ...(options.resolve && { resolve: options.resolve }) };

  return async (notification, { attempt, signal }) => {
    const waitMs = breaker.waitMs();
    if (waitMs > 0) return release(`${url.host} fails repeatedly; sending is paused`, waitMs);
    const body = formatBody(notification);
    const timestamp = Math.floor(Date.now() / 1_000);
    const signed = signatureHeaders(secret, { id: notification.notificationId, timestamp, body });
    try {
      const headers = { ...signed, "content-type": "application/json", "user-agent": "todoke" };
      const response = await httpPost({ ...target, headers, body, signal });
      // A receiver that rejects a request is available; one that is overloaded or broken is not.
      if (response.status >= 500 || response.status === 429) breaker.failed();
      else breaker.succeeded();
      return toOutcome(response, backoffMs(attempt, backoff));
    } catch (error) {
      // A stop is no failure of the receiver and not an attempt. The receiver may have the notification, under the same id.
      if (signal.aborted) return release("the sender stopped before the receiver responded");
      breaker.failed();
      throw new Error(`${url.host} did not answer`, { cause: error });
    }
  };
}

function formatBody({ notificationId, eventId, eventType, userId, text, data, occurredAt }: Notification): string {
  return JSON.stringify({
    type: eventType,
    timestamp: occurredAt,
    data: {
      notification_id: notificationId,
      event_id: eventId,
      user_id: userId,
      text,
      ...(data !== null && { data }),
    },
  });
}

function toOutcome({ status, retryAfter }: PostResponse, defaultMs: number): Outcome {
  if (status >= 200 && status < 300) return done;
  if (status === 410) return dead("the receiver answered 410 Gone");
  const requestedMs = status === 429 || status === 503 ? parseRetryAfterMs(retryAfter) : 0;
  return retry(Math.max(requestedMs, defaultMs), `the receiver answered ${status}`);
}

/** Seconds or a date, in milliseconds from now; 0 if it is neither. */
export function parseRetryAfterMs(header = "", now = Date.now()): number {
  const ms = /^\d{1,10}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - now;
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), retryAfterMaxMs) : 0;
}
