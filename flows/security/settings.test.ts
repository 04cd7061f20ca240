/** A process that cannot work with its settings says what is wrong with them, and shows none of their secrets (reference 5.13). */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { formatSigningKey, newSigningKey } from "@todoke/http";
import { expect, test } from "vitest";
import { todoke } from "../serving.ts";
import { canary, keepPrinted, names, variableOf } from "./served.ts";

/** Nothing is wrong with these, but that there is no such database: the process ends in any case. */
const settings: Record<string, string> = {
  ...Object.fromEntries(names.map((name) => [variableOf(name, "PORT"), "0"])),
  DATABASE_URL: "postgres://app@127.0.0.1:1/x",
  ACCOUNT_URL: "http://127.0.0.1:1",
  GATEWAY_BFF_TOKEN_KEY: formatSigningKey(newSigningKey("k1")),
  GATEWAY_BFF_SECRET: randomBytes(32).toString("base64url"),
  OIDC_ISSUER: "http://127.0.0.1:1",
  OIDC_CLIENT_ID: "todoke",
};

/** Runs the command to its end: what it printed, whichever way it ended. */
async function runToEnd(args: readonly string[], env: Record<string, string>): Promise<string> {
  const child = spawn(process.execPath, [todoke, ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 120_000,
  });
  const printed = keepPrinted(child);
  await once(child, "close");
  return printed();
}

test.each<[string, string, Record<string, string>]>([
  ["a database that is not there", "serve", { DATABASE_URL: "postgres://app:SECRET@127.0.0.1:1/x" }],
  [
    "a database that is not there, when asked how things are",
    "doctor",
    { DATABASE_URL: "postgres://app:SECRET@127.0.0.1:1/x" },
  ],
  ["a database that is not there, to be migrated", "migrate", { DATABASE_URL: "postgres://app:SECRET@127.0.0.1:1/x" }],
  ["a Redis that is not there", "doctor", { REDIS_URL: "redis://:SECRET@127.0.0.1:1" }],
  ["a bus that is not there", "doctor", { EVENT_BUS_URL: "nats://u:SECRET@127.0.0.1:1" }],
  ["another bus that is not there", "doctor", { EVENT_BUS_URL: "amqp://u:SECRET@127.0.0.1:1" }],
  ["a database by no URL", "serve", { DATABASE_URL: "host=db password=SECRET" }],
  ["a bus by no URL", "serve", { EVENT_BUS_URL: "nats//u:SECRET@127.0.0.1" }],
  ["a Redis by no URL", "serve", { REDIS_URL: "http://u:SECRET@127.0.0.1" }],
  ["an API key that is not hashed", "serve", { TODOKE_API_KEYS: "shop=read=SECRET" }],
  [
    "keys that are none",
    "serve",
    {
      TODOKE_TOKEN_KEYS: "SECRET",
      GATEWAY_BFF_TOKEN_KEY: "SECRET",
      GATEWAY_BFF_SECRET: "SECRET",
      MATCHMAKING_TICKET_SECRET: "SECRET",
    },
  ],
  [
    "a webhook's secret that is none",
    "serve",
    {
      NOTIFICATION_SENDER: "webhook",
      NOTIFICATION_WEBHOOK_URL: "https://u:SECRET@x.example",
      NOTIFICATION_WEBHOOK_SECRET: "SECRET",
    },
  ],
  [
    "a broker's secret where it does not belong",
    "serve",
    { ORDERS_BROKER: "http", ORDERS_BROKER_URL: "https://u:SECRET@x.example", ORDERS_BROKER_SECRET: "SECRET" },
  ],
])("a process that ends because of %s does not print the secret in it", async (_what, command, wrong) => {
  const secret = canary("setting");
  const changed = Object.entries(wrong).map(([name, value]) => [name, value.replaceAll("SECRET", secret)]);
  const env = { ...settings, ...Object.fromEntries(changed) };
  const printed = await runToEnd([command, ...(command === "doctor" ? [] : names)], env);
  expect(printed.trim()).not.toBe("");
  expect(printed).not.toContain(secret);
});
