/**
 * The signature of Standard Webhooks (symmetric, v1): HMAC-SHA256 of "id.timestamp.body". A receiver that checks it knows
 * that the message is ours, unchanged, and recent.
 */
import { createHmac } from "node:crypto";

export interface Signed {
  readonly id: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
}

export function signatureHeaders(secret: Uint8Array, { id, timestamp, body }: Signed): Record<string, string> {
  const signature = createHmac("sha256", secret).update(`${id}.${timestamp}.${body}`).digest("base64");
  return {
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": `v1,${signature}`,
  };
}

/** The bytes of "whsec_" and base64; undefined unless they are 24 to 64, as the specification asks. */
export function readSecret(text: string): Uint8Array | undefined {
  const [, encoded] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  if (encoded === undefined) return undefined;
  const secret = Buffer.from(encoded, "base64");
  return secret.length >= 24 && secret.length <= 64 && secret.toString("base64") === encoded ? secret : undefined;
}
