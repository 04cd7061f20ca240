import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import { expect, test } from "vitest";
import { documentedSettings, isDocumented, listServices } from "./settings.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const services = listServices(root);
const read = (path: string) => readFileSync(join(root, path), "utf8");

test("the systemd unit waits for a drain, and signals only the command", () => {
  const unit = parseEnv(read("deploy/systemd/todoke@.service"));
  expect(Number(unit.TimeoutStopSec)).toBeGreaterThan(25); // The deadline of a stop (packages/service/stop-signals.ts).
  expect(unit).toMatchObject({ KillMode: "mixed", KillSignal: "SIGTERM", DynamicUser: "yes", NoNewPrivileges: "yes" });
});

test("its settings are documented, and name the database of every service", () => {
  const names = Object.keys(parseEnv(read("deploy/systemd/todoke.env")));
  const settings = documentedSettings(root);
  expect(names.filter((name) => !isDocumented(settings, name))).toEqual([]);
  const databases = services.map(({ name }) => `${name.toUpperCase().replaceAll("-", "_")}_DATABASE_URL`);
  expect(names).toEqual(expect.arrayContaining(databases));
});
