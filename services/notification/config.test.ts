import { expect, test } from "vitest";
import { readSettings } from "./config.ts";

const dayMs = 24 * 60 * 60 * 1_000;

test("defaults: log sender, 30 days for sent notifications", () => {
  const errors: string[] = [];
  expect(readSettings({}, errors)).toMatchObject({
    sender: { kind: "log" },
    sentKeepMs: 30 * dayMs,
  });
  expect(errors).toEqual([]);
});

test("a retention that is not a number of days is a settings error", () => {
  const errors: string[] = [];
  readSettings({ NOTIFICATION_KEEP_DAYS: "0" }, errors);
  expect(errors).toEqual(['NOTIFICATION_KEEP_DAYS is "0" and should be a whole number from 1 to 3650']);
});

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const webhook = (more: Record<string, string>) => {
  const errors: string[] = [];
  const env = { NOTIFICATION_SENDER: "webhook", NOTIFICATION_WEBHOOK_SECRET: secret, ...more };
  return { ...readSettings(env, errors).sender, errors };
};

test.each([
  ["http://example.com/hook", "should begin with https://"],
  ["https://127.0.0.1/hook", "should lead to a public address"],
  ["https://[::ffff:10.0.0.1]/hook", "should lead to a public address"],
  ["https://0x7f.1/hook", "should lead to a public address"],
  ["https://me:password@example.com/", "holds a name or a password"],
  ["ftp://example.com", "should begin with https://"],
  ["nonsense", "is not a URL"],
])("a webhook to %s is a settings error that does not show the value", (url, reason) => {
  const { errors } = webhook({ NOTIFICATION_WEBHOOK_URL: url });
  expect(errors).toEqual([expect.stringContaining(`NOTIFICATION_WEBHOOK_URL ${reason}`)]);
  expect(errors.join()).not.toContain("password@");
});

test("an event type can have its own URL, and an invalid one is an error that names the type", () => {
  const fine = { NOTIFICATION_WEBHOOK_URL: "https://a.example/" };
  const own = {
    ...fine,
    NOTIFICATION_WEBHOOK_URLS: "EntitlementGranted=https://b.example/x=1, EntitlementRevoked=ftp://c",
  };
  const read = webhook(own);
  expect(read.errors).toEqual([
    expect.stringMatching(/^NOTIFICATION_WEBHOOK_URLS: EntitlementRevoked should begin with/),
  ]);
  expect(read).toMatchObject({ urls: new Map([["EntitlementGranted", new URL("https://b.example/x=1")]]) });
  expect(webhook({ ...fine, NOTIFICATION_WEBHOOK_URLS: "Nothing=https://b.example" }).errors).toEqual([
    "NOTIFICATION_WEBHOOK_URLS should name event types and URLs, as EntitlementGranted=https://host/path",
  ]);
});

test("a webhook needs a valid secret, and a setting to allow private addresses", () => {
  const url = { NOTIFICATION_WEBHOOK_URL: "http://127.0.0.1:9/" };
  const allow = { NOTIFICATION_WEBHOOK_ALLOW_PRIVATE: "true" };
  expect(webhook({ ...url, ...allow })).toMatchObject({ kind: "webhook", allowPrivate: true, errors: [] });
  for (const wrong of ["", "whsec_", "whsec_c2hvcnQ=", secret.slice(6)]) {
    expect(webhook({ ...url, ...allow, NOTIFICATION_WEBHOOK_SECRET: wrong }).errors).toEqual([
      "NOTIFICATION_WEBHOOK_SECRET should be whsec_ and 24 to 64 bytes in base64",
    ]);
  }
  expect(webhook({ NOTIFICATION_WEBHOOK_URL: "https://example.com", NOTIFICATION_SENDER: "pigeon" }).errors).toEqual([
    'NOTIFICATION_SENDER is "pigeon" and should be log or webhook',
  ]);
});
