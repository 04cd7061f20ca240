/** deploy/compose.yaml as text. flows/compose.test.ts runs its services. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { type Compose, readCompose } from "./compose.ts";
import { documentedSettings, isDocumented, listServices } from "./settings.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const allServices = listServices(root);
const read = (path: string) => readFileSync(join(root, path), "utf8");
const compose = readCompose(read("deploy/compose.yaml"));
const entries = Object.entries(compose.services);
const ours = "todoke:local";

/** They have no shell that could run a check, and nothing depends on them. */
const unchecked = ["otel-collector", "tempo", "loki"];
/** They do their work and exit. */
const oneShot = ["make-secrets", "migrate", "grant-rights"];

/** One sentence per image that can change, public port, plain secret, missing health check or wrong dependency. */
function composeErrors({ services }: Compose): string[] {
  return Object.entries(services).flatMap(([name, service]) => {
    const environment = Object.entries(service.environment ?? {});
    const isChecked = service.healthcheck !== undefined || service.image === ours;
    return [
      ...(/^todoke:local$|:v?\d+(\.\d+)+(-alpine)?$/.test(service.image)
        ? []
        : [`${name}: ${service.image} is not pinned`]),
      ...(service.ports ?? [])
        .filter((port) => !port.startsWith("127.0.0.1:"))
        .map((port) => `${name}: ${port} is open to other machines`),
      ...environment
        .filter(([key]) => /PASS|SECRET|KEY|TOKEN/.test(key) && !key.endsWith("_FILE"))
        .map(([key]) => `${name}: ${key} is a plain secret`),
      ...(isChecked || unchecked.includes(name) || oneShot.includes(name) ? [] : [`${name} has no health check`]),
      ...Object.entries(service.depends_on ?? {}).flatMap(([other, { condition }]) => {
        const expected = oneShot.includes(other) ? "service_completed_successfully" : "service_healthy";
        return services[other] && condition === expected ? [] : [`${name} should wait for ${other}: ${expected}`];
      }),
    ];
  });
}

test("images are pinned, ports are on loopback, secrets are files, and every server has a health check", () => {
  expect(composeErrors(compose)).toEqual([]);
});

test("each check finds a planted error", () => {
  const careless = {
    image: "postgres:latest",
    environment: { DB_PASSWORD: "hunter2" },
    ports: ["8080:8080"],
    depends_on: { migrate: { condition: "service_started" } },
  };
  expect(composeErrors({ services: { db: careless } })).toEqual([
    "db: postgres:latest is not pinned",
    "db: 8080:8080 is open to other machines",
    "db: DB_PASSWORD is a plain secret",
    "db has no health check",
    "db should wait for migrate: service_completed_successfully",
  ]);
});

test("every service is a container on its default port, read-only, and waits for the rights of its role", () => {
  for (const { name, port } of allServices) {
    const service = compose.services[name];
    expect(service, name).toMatchObject({ image: ours, command: ["serve", name], read_only: true });
    expect(service?.ports).toContain(`127.0.0.1:${port}:${port}`);
    expect(service?.depends_on).toHaveProperty("grant-rights");
  }
});

test("every setting is documented", () => {
  const settings = documentedSettings(root);
  const files = globSync("deploy/compose/*.env", { cwd: root });
  const names = [
    ...files.flatMap((file) => Object.keys(parseEnv(read(file)))),
    ...entries.filter(([, { image }]) => image === ours).flatMap(([, each]) => Object.keys(each.environment ?? {})),
  ];
  expect(names.length).toBeGreaterThan(20);
  expect(names.filter((name) => !isDocumented(settings, name))).toEqual([]);
  expect(["POINTS_DATABASE_ULR", "TODOKE_HOSTS"].filter((name) => isDocumented(settings, name))).toEqual([]);
});

test("every mounted file is there, and every volume is declared", () => {
  for (const [name, { volumes = [] }] of entries)
    for (const [source = ""] of volumes.map((volume) => volume.split(":")))
      if (source.startsWith("./")) expect(existsSync(join(root, "deploy", source)), `${name}: ${source}`).toBe(true);
      else expect(compose.volumes, name).toHaveProperty(source);
});

test("Prometheus scrapes the ops listener of every container", () => {
  const { scrape_configs } = parse(read("deploy/compose/prometheus.yaml"));
  const targets = allServices.map(({ name, port }) => `${name}:${port + 1_000}`);
  expect(scrape_configs[0].static_configs[0].targets.toSorted()).toEqual(targets.toSorted());
});

test("the health check of the image knows the port of every service", () => {
  const ports = /const defaultPorts = (\{[^}]+\})/.exec(read("deploy/docker/healthcheck.js"))?.[1] ?? "";
  expect(parse(ports)).toEqual(Object.fromEntries(allServices.map(({ name, port }) => [name, port])));
});
