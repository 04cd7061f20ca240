/** The chart as text. `npm run interop -- kubernetes` renders it and checks it against the schemas of Kubernetes. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { findFaults, type Manifest } from "../interop/kubernetes/faults.ts";
import { documentedSettings, isDocumented, listServices } from "./settings.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const allServices = listServices(root);
const chart = "deploy/kubernetes/todoke";
const read = (path: string) => readFileSync(join(root, path), "utf8");
const values = parse(read(`${chart}/values.yaml`));
const prefixOf = (name: string) => name.toUpperCase().replaceAll("-", "_");

test("the chart has the version of the packages", () => {
  const { version } = JSON.parse(read("package.json"));
  expect(parse(read(`${chart}/Chart.yaml`))).toMatchObject({ version, appVersion: version });
});

test("every service has its port, and its database as runtime role and as owner", () => {
  const ports = Object.entries<{ port: number }>(values.services).map(([name, { port }]) => [name, port]);
  expect(Object.fromEntries(ports)).toEqual(Object.fromEntries(allServices.map(({ name, port }) => [name, port])));
  for (const { name } of allServices) {
    const setting = `${prefixOf(name)}_DATABASE_URL`;
    expect(values.services[name].secrets.filter((each: string) => each.endsWith("DATABASE_URL"))).toEqual([setting]);
    expect(values.secrets[setting].name).not.toBe(values.migrations.secrets[setting].name);
  }
});

test("every setting is documented, and every secret is a reference", () => {
  const settings = documentedSettings(root);
  const references = { ...values.migrations.secrets, ...values.secrets };
  const used = Object.values<{ secrets: string[] }>(values.services).flatMap(({ secrets }) => secrets);
  expect(used.filter((name) => !(name in values.secrets))).toEqual([]);
  expect(Object.keys(values.secrets).filter((name) => !used.includes(name))).toEqual([]);
  const names = [...Object.keys(values.settings), ...Object.keys(references)];
  expect(names.filter((name) => !isDocumented(settings, name))).toEqual([]);
  for (const reference of Object.values(references))
    expect(reference).toEqual({ name: expect.any(String), key: expect.any(String) });
  for (const file of globSync(`${chart}/templates/*`, { cwd: root })) expect(read(file)).not.toMatch(/kind: Secret\b/);
});

test("the checks of a rendered chart find planted errors", () => {
  const container = { name: "points", image: "todoke:latest", env: [{ name: "POINTS_DATABASE_URL", value: "x" }] };
  const careless: Manifest[] = [
    { kind: "Secret", metadata: { name: "s" } },
    { kind: "Job", metadata: { name: "j" } },
    { kind: "Deployment", metadata: { name: "d" }, spec: { template: { spec: { containers: [container] } } } },
  ];
  expect(findFaults(careless)).toEqual([
    "Secret s: a secret is in the chart",
    "Job j: does not run before the roll-out",
    "Deployment d: may run as root",
    "Deployment d: has no seccomp profile",
    "Deployment d: has a token for the API server",
    "Deployment d: gets variables of services, which look like settings",
    "Deployment d: points has more rights than it needs",
    "Deployment d: points has no resources",
    "Deployment d: todoke:latest is not pinned",
    "Deployment d: points has POINTS_DATABASE_URL in its environment",
    "Deployment d: has no probes",
    "Deployment d: is killed while it drains",
    "Deployment d: has no PodDisruptionBudget",
  ]);
});
