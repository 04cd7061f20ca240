/**
 * The signature of Standard Webhooks (symmetric, v1): HMAC-SHA256 of "id.timestamp.body". It proves to the receiver that
 * the message is authentic, unchanged and recent.
 */
import { createHmac } from "node:crypto";

export interface SignedMessage {
  readonly id: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
}

export function signatureHeaders(secret: Uint8Array, { id, timestamp, body }: SignedMessage): Record<string, string> {
  const signature = createHmac("sha256", secret).update(`${id}.${timestamp}.${body}`).digest("base64");
  return {
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": `v1,${signature}`,
  };
}

/** Parses "whsec_" and base64. Returns undefined unless it has 24 to 64 bytes, as the specification requires. */
export function parseSecret(text: string): Uint8Array | undefined {
  const [, encoded] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  if (encoded === undefined) return undefined;
  const secret = Buffer.from(encoded, "base64");
  return secret.length >= 24 && secret.length <= 64 && secret.toString("base64") === encoded ? secret : undefined;
}
