/**
 * Verifies a webhook (https://www.standardwebhooks.com) with the Web Crypto API. Read the body as text first: JSON that was
 * parsed and written again has another signature.
 */

/** The body of a webhook, with its id. */
export interface WebhookEvent {
  /** The same in every attempt: handle an id once. */
  readonly id: string;
  /** The event type, such as EntitlementGranted. */
  readonly type: string;
  /** When the event occurred. */
  readonly timestamp: string;
  readonly data: {
    readonly notification_id: string;
    readonly event_id: string;
    readonly user_id: string;
    readonly text: { readonly en: string; readonly ja: string };
    /** Values for programs, as in the inbox. */
    readonly data?: Readonly<Record<string, unknown>>;
  };
}

/** The request is not from Todoke, or is an old one that is replayed. Answer it with 400. */
export class WebhookRejected extends Error {
  override readonly name = "WebhookRejected";
  /** Express and Fastify answer with it. */
  readonly statusCode = 400;
}

/** Headers of fetch, or the object of Node's HTTP server. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface WebhookOptions {
  /** How far the time of the request may be from this clock. Default: 300. */
  readonly toleranceSeconds?: number;
}

/** Give both secrets while one replaces the other. */
export async function verifyWebhook(
  body: string | Uint8Array<ArrayBuffer>,
  headers: WebhookHeaders,
  secrets: string | readonly string[],
  { toleranceSeconds = 300 }: WebhookOptions = {},
): Promise<WebhookEvent> {
  const [id, sentAt, signatures] = ["id", "timestamp", "signature"].map((name) => header(headers, `webhook-${name}`));
  if (!id || !sentAt || !signatures)
    throw new WebhookRejected("the headers webhook-id, -timestamp and -signature are needed");
  if (!/^\d{1,12}$/.test(sentAt) || Math.abs(Date.now() / 1_000 - Number(sentAt)) > toleranceSeconds)
    throw new WebhookRejected("the time of the webhook is too far from this clock");
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  const signed = new TextEncoder().encode(`${id}.${sentAt}.${text}`);
  for (const secret of [secrets].flat())
    if (await isSigned(signed, signatures, secret)) return { ...JSON.parse(text), id };
  throw new WebhookRejected("no signature of the webhook is valid");
}

function header(headers: WebhookHeaders, name: string): string | undefined {
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  return typeof value === "string" ? value : undefined;
}

async function isSigned(signed: Uint8Array<ArrayBuffer>, signatures: string, secret: string): Promise<boolean> {
  const hmac = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", fromBase64(secret.replace(/^whsec_/, "")), hmac, false, ["verify"]);
  for (const signature of signatures.split(" ")) {
    const [version, value = ""] = signature.split(",");
    // It compares in constant time.
    if (version === "v1" && isBase64(value) && (await crypto.subtle.verify(hmac, key, fromBase64(value), signed)))
      return true;
  }
  return false;
}

const isBase64 = (text: string): boolean => text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text);
const fromBase64 = (text: string) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
