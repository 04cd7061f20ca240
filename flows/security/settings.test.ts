/** A process with invalid settings names the error and prints no secret (reference 5.13). */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { formatSigningKey, newSigningKey } from "@todoke/http";
import { expect, test } from "vitest";
import { todoke } from "../service-process.ts";
import { canary, captureOutput, envName, serviceNames } from "./serve-all.ts";

/** Valid settings with an unreachable database, so that the process always exits. */
const settings: Record<string, string> = {
  ...Object.fromEntries(serviceNames.map((name) => [envName(name, "PORT"), "0"])),
  DATABASE_URL: "postgres://app@127.0.0.1:1/x",
  ACCOUNT_URL: "http://127.0.0.1:1",
  GATEWAY_BFF_TOKEN_KEY: formatSigningKey(newSigningKey("k1")),
  GATEWAY_BFF_SECRET: randomBytes(32).toString("base64url"),
  OIDC_ISSUER: "http://127.0.0.1:1",
  OIDC_CLIENT_ID: "todoke",
};

/** Runs a command and returns its output. */
async function runToEnd(args: readonly string[], env: Record<string, string>): Promise<string> {
  const child = spawn(process.execPath, [todoke, ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 120_000,
  });
  const output = captureOutput(child);
  await once(child, "close");
  return output();
}

test.each<[string, string, Record<string, string>]>([
  ["an unreachable database", "serve", { DATABASE_URL: "postgres://app:SECRET@127.0.0.1:1/x" }],
  ["an unreachable database (doctor)", "doctor", { DATABASE_URL: "postgres://app:SECRET@127.0.0.1:1/x" }],
  ["an unreachable database (migrate)", "migrate", { DATABASE_URL: "postgres://app:SECRET@127.0.0.1:1/x" }],
  ["an unreachable Redis", "doctor", { REDIS_URL: "redis://:SECRET@127.0.0.1:1" }],
  ["an unreachable NATS", "doctor", { EVENT_BUS_URL: "nats://u:SECRET@127.0.0.1:1" }],
  ["an unreachable RabbitMQ", "doctor", { EVENT_BUS_URL: "amqp://u:SECRET@127.0.0.1:1" }],
  ["a database setting that is no URL", "serve", { DATABASE_URL: "host=db password=SECRET" }],
  ["a bus setting that is no URL", "serve", { EVENT_BUS_URL: "nats//u:SECRET@127.0.0.1" }],
  ["a Redis setting that is no URL", "serve", { REDIS_URL: "http://u:SECRET@127.0.0.1" }],
  ["an API key that is not hashed", "serve", { TODOKE_API_KEYS: "shop=read=SECRET" }],
  [
    "invalid keys",
    "serve",
    {
      TODOKE_TOKEN_KEYS: "SECRET",
      GATEWAY_BFF_TOKEN_KEY: "SECRET",
      GATEWAY_BFF_SECRET: "SECRET",
      MATCHMAKING_TICKET_SECRET: "SECRET",
    },
  ],
  [
    "an invalid webhook secret",
    "serve",
    {
      NOTIFICATION_SENDER: "webhook",
      NOTIFICATION_WEBHOOK_URL: "https://u:SECRET@x.example",
      NOTIFICATION_WEBHOOK_SECRET: "SECRET",
    },
  ],
  [
    "a broker secret in its URL",
    "serve",
    { ORDERS_BROKER: "http", ORDERS_BROKER_URL: "https://u:SECRET@x.example", ORDERS_BROKER_SECRET: "SECRET" },
  ],
])("a process that exits because of %s does not print the secret", async (_what, command, invalid) => {
  const secret = canary("setting");
  const changed = Object.entries(invalid).map(([name, value]) => [name, value.replaceAll("SECRET", secret)]);
  const env = { ...settings, ...Object.fromEntries(changed) };
  const output = await runToEnd([command, ...(command === "doctor" ? [] : serviceNames)], env);
  expect(output.trim()).not.toBe("");
  expect(output).not.toContain(secret);
});
