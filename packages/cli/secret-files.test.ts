import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { SettingsError } from "./errors.ts";
import { readSecretFiles } from "./secret-files.ts";
import { services } from "./services.ts";
import { runTodoke } from "./testing/command.ts";

function fileWith(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "todoke-secret-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "secret");
  writeFileSync(path, text);
  return path;
}

function errorsOf(env: Record<string, string>): readonly string[] {
  try {
    readSecretFiles(env, services);
    return [];
  } catch (error) {
    return (error as SettingsError).errors;
  }
}

test("a secret is read from its file, without the newline that editors add", () => {
  const env = { POINTS_DATABASE_URL_FILE: fileWith("postgres://db/points\n"), LOG_LEVEL: "info" };
  expect(readSecretFiles(env, services)).toEqual({ ...env, POINTS_DATABASE_URL: "postgres://db/points" });
});

test("files of other programs are not read", () => {
  const env = { SSL_CERT_FILE: "/nowhere", RABBITMQ_CONFIG_FILE: "/nowhere" };
  expect(readSecretFiles(env, services)).toEqual(env);
});

test("all errors are reported at once, without a secret", () => {
  const [empty, large] = [fileWith("\n"), fileWith("s3cret".repeat(20_000))];
  const errors = errorsOf({
    DATABASE_URL: "postgres://u:s3cret@db/x",
    DATABASE_URL_FILE: fileWith("postgres://u:s3cret@db/y"),
    GATEWAY_BFF_SECRET_FILE: empty,
    OIDC_CLIENT_SECRET_FILE: large,
    REDIS_URL_FILE: "/nowhere/redis",
  });
  expect(errors).toEqual([
    "DATABASE_URL and DATABASE_URL_FILE are both set: keep one",
    "REDIS_URL_FILE: /nowhere/redis cannot be read (ENOENT)",
    `OIDC_CLIENT_SECRET_FILE: ${large} is too large for a secret`,
    `GATEWAY_BFF_SECRET_FILE: ${empty} is empty`,
  ]);
  expect(errors.join()).not.toContain("s3cret");
});

test("every command reads the files and reports their errors as settings", async () => {
  expect(await runTodoke("migrate", { DATABASE_URL_FILE: "/nowhere/url" })).toMatchObject({
    code: 2,
    err: "✗ DATABASE_URL_FILE: /nowhere/url cannot be read (ENOENT)\n",
  });
  expect((await runTodoke("migrate account", { DATABASE_URL_FILE: fileWith("mysql://db/x") })).err).toContain(
    "DATABASE_URL begins with mysql://",
  );
});
