/**
 * Sends to a receiver's URL as Standard Webhooks (https://www.standardwebhooks.com) describes. The webhook-id is the
 * notification's id at every try, so that a receiver can tell a second copy; the signature is made anew, with the time.
 */
import { type CircuitBreaker, circuitBreaker } from "@todoke/http";
import { type Backoff, backoffMs, dead, done, type Outcome, release, retry } from "@todoke/kernel/worker";
import type { Notification } from "../store/notifications.ts";
import { httpPost, type PostAnswer, type Resolve } from "./http-post.ts";
import type { Send } from "./index.ts";
import { signatureHeaders } from "./signature.ts";

/** What all receivers have in common. */
export interface WebhookOptions {
  readonly url: URL;
  readonly secret: Uint8Array;
  /** Lets the URL lead into our own network. */
  readonly allowPrivate: boolean;
  readonly backoff: Backoff;
  readonly timeoutMs?: number;
  /** So many at once, so that a receiver that hangs does not take every place. */
  readonly inFlightMax?: number;
  readonly breaker?: CircuitBreaker;
  readonly resolve?: Resolve;
}

// What a receiver asks for is honoured up to here; a notification is not put off for days by a wrong header.
const retryAfterMaxMs = 60 * 60 * 1_000;

export interface WebhooksOptions extends WebhookOptions {
  /** Receivers of their own, by event type. */
  readonly urls: ReadonlyMap<string, URL>;
  /** How many notifications the sender works on at once. */
  readonly concurrency: number;
}

/** A receiver for each URL: each has its own breaker and its share of the places, so that a dead one slows no other. */
export function webhookSenders({ urls, concurrency, ...options }: WebhooksOptions): Send {
  const addresses = new Set([options.url, ...urls.values()].map(({ href }) => href));
  const inFlightMax = Math.ceil(concurrency / addresses.size);
  const senders = new Map(
    [...addresses].map((href) => [href, webhookSender({ ...options, url: new URL(href), inFlightMax })]),
  );
  return (notification, about) => {
    const { href } = urls.get(notification.eventType) ?? options.url;
    return (senders.get(href) as Send)(notification, about);
  };
}

const busyMs = 250;

export function webhookSender(options: WebhookOptions): Send {
  const { url, inFlightMax = Number.POSITIVE_INFINITY } = options;
  const send = sendTo(options);
  let inFlight = 0;
  return async (notification, about) => {
    if (inFlight >= inFlightMax) return release(`${url.host} has ${inFlight} notifications to answer first`, busyMs);
    inFlight++;
    try {
      return await send(notification, about);
    } finally {
      inFlight--;
    }
  };
}

function sendTo(options: WebhookOptions): Send {
  const { url, secret, allowPrivate, backoff, timeoutMs = 15_000, breaker = circuitBreaker() } = options;
  const where = { url, allowPrivate, timeoutMs, ...(options.resolve && { resolve: options.resolve }) };

  return async (notification, { attempt, signal }) => {
    const waitMs = breaker.waitMs();
    if (waitMs > 0) return release(`${url.host} has failed again and again; it is left alone for a while`, waitMs);
    const body = bodyOf(notification);
    const timestamp = Math.floor(Date.now() / 1_000);
    const signed = signatureHeaders(secret, { id: notification.notificationId, timestamp, body });
    try {
      const headers = { ...signed, "content-type": "application/json", "user-agent": "todoke" };
      const answer = await httpPost({ ...where, headers, body, signal });
      // A receiver that answers is there, even if it refuses; one that cannot serve is not.
      if (answer.status >= 500 || answer.status === 429) breaker.failed();
      else breaker.succeeded();
      return outcomeOf(answer, backoffMs(attempt, backoff));
    } catch (error) {
      // Our own stop is nothing against the receiver, nor a try that counts; perhaps it came through, under the same id.
      if (signal.aborted) return release("the sender stopped before the receiver had answered");
      breaker.failed();
      throw new Error(`${url.host} did not answer`, { cause: error });
    }
  };
}

function bodyOf({ notificationId, eventId, eventType, userId, text, data, occurredAt }: Notification): string {
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

function outcomeOf({ status, retryAfter }: PostAnswer, usualMs: number): Outcome {
  if (status >= 200 && status < 300) return done;
  if (status === 410) return dead("the receiver answered 410: it wants no more of these");
  const asked = status === 429 || status === 503 ? retryAfterMs(retryAfter) : 0;
  return retry(Math.max(asked, usualMs), `the receiver answered ${status}`);
}

/** Seconds, or a date; 0 where it is neither. */
export function retryAfterMs(header = "", now = Date.now()): number {
  const ms = /^\d{1,10}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - now;
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), retryAfterMaxMs) : 0;
}
