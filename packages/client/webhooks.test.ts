import { createHmac, randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { verifyWebhook, WebhookRejected } from "./webhooks.ts";

const newSecret = () => `whsec_${randomBytes(32).toString("base64")}`;
const [secret, other] = [newSecret(), newSecret()];
const event = {
  type: "EntitlementGranted",
  timestamp: "2026-01-15T10:00:00Z",
  data: { notification_id: "n_1", event_id: "e_1", user_id: "u_1", text: { en: "Hello", ja: "こんにちは" } },
};
const body = JSON.stringify(event);

function signed(change: { id?: string; at?: number; body?: string; secret?: string } = {}) {
  const { id = "n_1", at = Math.floor(Date.now() / 1_000) } = change;
  const key = Buffer.from((change.secret ?? secret).slice(6), "base64");
  const signature = createHmac("sha256", key)
    .update(`${id}.${at}.${change.body ?? body}`)
    .digest("base64");
  return { "webhook-id": id, "webhook-timestamp": String(at), "webhook-signature": `v1,${signature}` };
}

test("a signed webhook is read, with headers of fetch or of Node", async () => {
  const headers = signed();
  expect(await verifyWebhook(body, new Headers(headers), secret)).toEqual({ ...event, id: "n_1" });
  expect(await verifyWebhook(body, headers, secret)).toEqual({ ...event, id: "n_1" });
  expect(await verifyWebhook(new TextEncoder().encode(body), headers, secret)).toEqual({ ...event, id: "n_1" });
});

test("while a secret is replaced, both are accepted, and so are several signatures", async () => {
  expect(await verifyWebhook(body, signed({ secret: other }), [secret, other])).toMatchObject({ id: "n_1" });
  const headers = signed();
  const several = { ...headers, "webhook-signature": `v1a,x v1,??? v1,AAAA ${headers["webhook-signature"]}` };
  expect(await verifyWebhook(body, several, secret)).toMatchObject({ id: "n_1" });
});

test.each([
  ["another body", `${body} `, signed()],
  ["another id", body, { ...signed(), "webhook-id": "n_2" }],
  ["another secret", body, signed({ secret: other })],
  ["an old time", body, signed({ at: Date.now() / 1_000 - 301 })],
  ["a time to come", body, signed({ at: Math.floor(Date.now() / 1_000) + 330 })],
  ["no number as its time", body, { ...signed(), "webhook-timestamp": "x" }],
  ["no signature", body, { ...signed(), "webhook-signature": undefined }],
  ["an unknown version", body, { ...signed(), "webhook-signature": signed()["webhook-signature"].replace("v1", "v2") }],
  ["a short signature", body, { ...signed(), "webhook-signature": "v1," }],
])("a webhook with %s is rejected", async (_what, text, headers) => {
  await expect(verifyWebhook(text, headers, secret)).rejects.toThrow(WebhookRejected);
});
