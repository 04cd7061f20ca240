/** The settings that only this service has. */
import { isIP } from "node:net";
import { events, isEventType } from "@todoke/contracts";
import { readSetting } from "@todoke/http";
import { type Env, integerReader } from "@todoke/service";
import { isPublicAddress } from "./senders/public-address.ts";
import { parseSecret } from "./senders/signature.ts";

export type SenderSettings =
  | { readonly kind: "log" }
  | {
      readonly kind: "webhook";
      /** By event type; all others go to `url`. */
      readonly urls: ReadonlyMap<string, URL>;
      readonly url: URL;
      readonly secret: Uint8Array;
      readonly allowPrivate: boolean;
    };

export interface Settings {
  readonly sender: SenderSettings;
  /** The largest number of open streams in this process. */
  readonly streamsMax: number;
  /** How long SENT notifications and redriven dead letters are kept. */
  readonly sentKeepMs: number;
}

const eventTypes = Object.keys(events);
const dayMs = 24 * 60 * 60 * 1_000;

export function readSettings(env: Env, errors: string[]): Settings {
  const integer = integerReader(env, errors);
  const sentKeepMs = integer("NOTIFICATION_KEEP_DAYS", 30, [1, 3_650]) * dayMs;
  const sender = readSender(env, errors);
  const streamsMax = integer("NOTIFICATION_STREAMS_MAX", 2_000, [1, 100_000]);
  return { sender, streamsMax, sentKeepMs };
}

function readSender(env: Env, errors: string[]): SenderSettings {
  const kind = readSetting(env, ["NOTIFICATION_SENDER"], "log");
  if (kind === "webhook") return readWebhook(env, errors);
  if (kind !== "log") errors.push(`NOTIFICATION_SENDER is ${JSON.stringify(kind)} and should be log or webhook`);
  return { kind: "log" };
}

/** Errors do not show the values, because both may be secret. */
function readWebhook(env: Env, errors: string[]): SenderSettings {
  const allowPrivate = env.NOTIFICATION_WEBHOOK_ALLOW_PRIVATE === "true";
  const read = (name: string, text: string): URL | null => {
    const url = URL.parse(text);
    const error = url ? webhookUrlError(url, allowPrivate) : "is not a URL: it should look like https://host/path";
    if (error === undefined) return url;
    errors.push(`${name} ${error}`);
    return null;
  };
  const url = read("NOTIFICATION_WEBHOOK_URL", env.NOTIFICATION_WEBHOOK_URL ?? "");
  const urls = new Map<string, URL>();
  for (const pair of (env.NOTIFICATION_WEBHOOK_URLS || "").split(/[\s,]+/).filter(Boolean)) {
    const [, eventType = "", text = ""] = /^([^=]*)=(.*)$/.exec(pair) ?? [];
    if (!isEventType(eventType)) {
      errors.push(`NOTIFICATION_WEBHOOK_URLS should name event types and URLs, as ${eventTypes[0]}=https://host/path`);
      continue;
    }
    const own = read(`NOTIFICATION_WEBHOOK_URLS: ${eventType}`, text);
    if (own) urls.set(eventType, own);
  }
  const secret = parseSecret(env.NOTIFICATION_WEBHOOK_SECRET ?? "");
  if (!secret) errors.push("NOTIFICATION_WEBHOOK_SECRET should be whsec_ and 24 to 64 bytes in base64");
  return url && secret ? { kind: "webhook", url, urls, secret, allowPrivate } : { kind: "log" };
}

function webhookUrlError(url: URL, allowPrivate: boolean): string | undefined {
  const orAllow = "or NOTIFICATION_WEBHOOK_ALLOW_PRIVATE should be true";
  if (url.username || url.password)
    return "holds a name or a password: the receiver should check the signature instead";
  if (url.protocol !== "https:" && !(allowPrivate && url.protocol === "http:")) {
    return `should begin with https://, ${orAllow}`;
  }
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  if (!allowPrivate && isIP(host) && !isPublicAddress(host)) return `should lead to a public address, ${orAllow}`;
  return undefined;
}
