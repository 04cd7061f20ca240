import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { listKnownSettings } from "../known-settings.ts";
import { readSecretFiles, secretNames } from "../secret-files.ts";
import { loadAll } from "../select-services.ts";
import { services } from "../services.ts";
import { runTodoke } from "../testing/command.ts";

const known = [...listKnownSettings(await loadAll(services))];
const secrets = [...secretNames(services)];

const canary = "s3cret-canary";

/** A value of its kind that contains the canary. */
function secretValue(name: string): string {
  if (!/_URLS?$/.test(name)) return canary;
  if (name.includes("WEBHOOK")) return `https://hooks.example/${canary}`;
  const scheme = name.includes("REDIS") ? "redis" : name.includes("BUS") ? "nats" : "postgres";
  return `${scheme}://user:${canary}@host.example/x?password=${canary}`;
}

function filesWith(values: Readonly<Record<string, string>>): Record<string, string> {
  const folder = mkdtempSync(join(tmpdir(), "todoke-config-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      const path = join(folder, name);
      writeFileSync(path, `${value}\n`);
      return [`${name}_FILE`, path];
    }),
  );
}

test("config prints each value with its source", async () => {
  const files = filesWith({ DATABASE_URL: "postgres://todoke:pw@db.example/todoke" });
  const env = { ...files, TODOKE_HOST: "0.0.0.0", POINTS_LEASE_MS: "5000", POINTS_RELAY_LEASE_MS: "6000" };
  const { code, out, err } = await runTodoke("config points", env);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  const row = (name: string) => new RegExp(`^ {2}${name} {2,}(.*)$`, "m").exec(out)?.[1]?.replace(/ {2,}/, " | ");
  expect(out).toMatch(/^all services\n/);
  expect(row("DATABASE_URL")).toBe(`postgres://todoke@db.example/todoke | file ${files.DATABASE_URL_FILE}`);
  expect(row("POINTS_DATABASE_URL")).toBe(`postgres://todoke@db.example/todoke | file ${files.DATABASE_URL_FILE}`);
  expect(row("TODOKE_HOST")).toBe("0.0.0.0 | environment");
  expect(row("POINTS_HOST")).toBe("0.0.0.0 | environment TODOKE_HOST");
  expect(row("POINTS_OPS_HOST")).toBe("127.0.0.1 | default");
  expect(row("POINTS_RELAY_LEASE_MS")).toBe("6000 | environment");
  expect(row("POINTS_INBOX_LEASE_MS")).toBe("5000 | environment POINTS_LEASE_MS");
  expect(row("POINTS_SCHEDULER_SECONDS")).toBe("10 | default");
  expect(row("POINTS_EVENT_BUS_URL")).toBeUndefined();
  expect((await runTodoke("config points --all", env)).out).toMatch(/^ {2}POINTS_EVENT_BUS_URL +\(not set\)$/m);
});

test("config prints wrong and misspelt settings, and the values all the same", async () => {
  const env = { DATABASE_URL: "postgres://db.example/x", POINTS_LEASE_MS: "soon", POINTS_LEASEMS: "1", POINTS_X: "1" };
  const { code, out, err } = await runTodoke("config points", env);
  expect(code).toBe(2);
  expect(out).toMatch(/POINTS_LEASE_MS +soon +environment/);
  expect(err.split("\n")).toEqual([
    "! POINTS_X is not a setting of Todoke",
    '✗ points: POINTS_LEASE_MS is "soon" and should be a whole number from 1000 to 86400000',
    '✗ POINTS_LEASEMS is not a setting. Did you mean "POINTS_LEASE_MS"?',
    "",
  ]);
});

test("no secret of any service is printed, given in the environment or as a file", async () => {
  const values = Object.fromEntries(secrets.map((name) => [name, secretValue(name)]));
  const others = known.filter((name) => /_(URL|ORIGIN|ISSUER|ENDPOINT)$/.test(name) && !secrets.includes(name));
  const addresses = Object.fromEntries(others.map((name) => [name, `http://user:${canary}@host.example`]));
  const branches = { NOTIFICATION_SENDER: "webhook", ORDERS_BROKER: "http" };
  for (const given of [values, filesWith(values)])
    for (const args of ["config --all", "config --json --all"])
      for (const more of [{}, branches]) {
        const { out, err } = await runTodoke(args, { ...given, ...addresses, ...more });
        expect(out).toContain("(hidden)");
        expect(out + err).not.toContain(canary);
      }
  const token = { DATABASE_URL: "postgres://db/x", EVENT_BUS_URL: `nats://${canary}@bus.example` };
  expect((await runTodoke("config points", token)).out).not.toContain(canary);
  const list = { DATABASE_URL: "postgres://db/x", EVENT_BUS_URL: `nats://u:a,${canary}@bus.example` };
  expect((await runTodoke("config points", list)).out).not.toContain(canary);
});

test("every setting that is a secret, or an address that may contain one, can be given as a file", () => {
  const look = known.filter((name) => /SECRET|KEY|PASSWORD|TOKEN|(DATABASE|BUS|REDIS|WEBHOOK)_URLS?$/.test(name));
  const isFile = (name: string) => name.endsWith("_FILE");
  expect(look.filter((name) => !isFile(name) && !name.endsWith("_PER_SECOND") && !secrets.includes(name))).toEqual([]);
  const values = Object.fromEntries(secrets.map((name) => [name, secretValue(name)]));
  expect(readSecretFiles(filesWith(values), services)).toMatchObject(values);
});
