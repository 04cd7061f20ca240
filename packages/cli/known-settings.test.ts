import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { branches, findUnknownSettings, listKnownSettings, readSettingsOf } from "./known-settings.ts";
import { type LoadedService, loadAll } from "./select-services.ts";
import { withoutServiceLinks } from "./service-links.ts";
import { type Env, type Service, services } from "./services.ts";
import { runTodoke } from "./testing/command.ts";

const loaded = await loadAll(services);
const known = listKnownSettings(loaded);

const pages = [
  "packages/cli/README.md",
  "packages/service/README.md",
  "docs/guides/let-players-in.md",
  ...services.map(({ name }) => `services/${name}/README.md`),
];

/** The names in the first column of the tables of settings. */
function documentedIn(page: string): string[] {
  const text = readFileSync(fileURLToPath(new URL(`../../${page}`, import.meta.url)), "utf8");
  const columns = [...text.matchAll(/^\| (`[A-Z<].*?) \|/gm)].map(([, column = ""]) => column);
  return columns.flatMap((column) => [...column.matchAll(/`([A-Z_<>]{4,})`/g)].map(([, name = ""]) => name));
}

test("every setting in the documents is known", () => {
  const names = new Set(pages.flatMap(documentedIn));
  expect(names.size).toBeGreaterThan(80);
  // Of other programs, or patterns that other rows explain.
  const others = ["NO_COLOR", "<SECRET>_FILE", "<SERVICE>_<WORKER>_", "<SERVICE>_<TOPIC>_BUS_URL"];
  const unknown = [...names]
    .filter((name) => !others.includes(name) && !name.startsWith("OTEL_"))
    .filter((name) => !known.has(name.replace("<SERVICE>", "POINTS").replace("<WORKER>", "RELAY")));
  expect(unknown).toEqual([]);
});

/** The tables of a service, then those of all services. */
const pagesOf = (service: string) => [
  service === "gateway-bff" ? "docs/guides/let-players-in.md" : `services/${service}/README.md`,
  "packages/service/README.md",
  "packages/cli/README.md",
  "docs/telemetry.md",
];

/** What the service reads, and no table of its pages names: by its name, as `<SERVICE>_…`, or as `ORDERS_RELAY_…`. */
function undocumented({ entry, service }: LoadedService, branches: readonly Env[]): string[] {
  const tables = pagesOf(entry.name).map(tablesOf).join("\n");
  const prefix = `${entry.name.toUpperCase().replaceAll("-", "_")}_`;
  const workers = [...tables.matchAll(/`([A-Z_]+_)…`/g)].map(([, start = ""]) => start);
  const isDocumented = (name: string) =>
    [name, name.replace(prefix, "<SERVICE>_")].some((form) => tables.includes(`\`${form}\``)) ||
    workers.some((start) => start.startsWith(prefix) && name.startsWith(start)) ||
    (name.startsWith("OTEL_") && tables.includes("`OTEL_"));
  const read = branches.flatMap((env) => [...readSettingsOf({ entry, service }, env).keys()]);
  // `EVENT_BUS_URL` of other services is read by their consumers.
  return [...new Set(read)].filter((name) => !isDocumented(name) && !name.endsWith("_EVENT_BUS_URL"));
}

const tablesOf = (page: string): string =>
  readFileSync(fileURLToPath(new URL(`../../${page}`, import.meta.url)), "utf8")
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .join("\n");

test.each(loaded.map((each) => [each.entry.name, each] as const))(
  "every setting that %s reads is in its table of settings",
  (_name, each) => {
    expect(undocumented(each, [{}, branches])).toEqual([]);
    const reading: Service = {
      ...each.service,
      configErrors: (env) => [env.ORDERS_NEW_SETTING ?? ""],
    };
    expect(undocumented({ ...each, service: reading }, [{}])).toContain("ORDERS_NEW_SETTING");
  },
);

const check = (env: Record<string, string>) => findUnknownSettings(loaded, env);

test("a misspelt setting is reported with the one that was probably meant", () => {
  expect(
    check({
      TODOKE_ALOWED_HOSTS: "x",
      ENTITLEMENT_DATABASE_ULR: "x",
      POINTS_RELAY_LEASE_MSS: "1",
      NOTIFICATION_WEBHOOK_SECRETS: "x",
      GATEWAY_BFF_SECRET_FIEL: "x",
      EVENT_BUS_KEEP_DAY: "1",
    }).misspelt,
  ).toEqual([
    'TODOKE_ALOWED_HOSTS is not a setting. Did you mean "TODOKE_ALLOWED_HOSTS"?',
    'ENTITLEMENT_DATABASE_ULR is not a setting. Did you mean "ENTITLEMENT_DATABASE_URL"?',
    'POINTS_RELAY_LEASE_MSS is not a setting. Did you mean "POINTS_RELAY_LEASE_MS"?',
    'NOTIFICATION_WEBHOOK_SECRETS is not a setting. Did you mean "NOTIFICATION_WEBHOOK_SECRET"?',
    'GATEWAY_BFF_SECRET_FIEL is not a setting. Did you mean "GATEWAY_BFF_SECRET_FILE"?',
    'EVENT_BUS_KEEP_DAY is not a setting. Did you mean "EVENT_BUS_KEEP_DAYS"?',
  ]);
});

test("variables of other programs are not faults", () => {
  const other = { ACCOUNT_ID: "42", POINTS_COLOUR: "red", PGHOST: "x", OIDC_RP_CLIENT: "x", DATABASE_URI: "x" };
  expect(check(other)).toEqual({
    misspelt: [],
    unknown: ["ACCOUNT_ID is not a setting of Todoke", "POINTS_COLOUR is not a setting of Todoke"],
  });
});

test("variables that Kubernetes adds are ignored, also those with the name of a setting", async () => {
  const names = [...services.map(({ name }) => name), "todoke", "todoke-points", "postgres"];
  const links = Object.fromEntries(
    names.flatMap((name) => {
      const prefix = name.toUpperCase().replaceAll("-", "_");
      return [
        [`${prefix}_SERVICE_HOST`, "10.0.0.1"],
        [`${prefix}_SERVICE_PORT`, "8081"],
        [`${prefix}_SERVICE_PORT_HTTP`, "8081"],
        [`${prefix}_PORT`, "tcp://10.0.0.1:8081"],
        [`${prefix}_PORT_8081_TCP`, "tcp://10.0.0.1:8081"],
        [`${prefix}_PORT_8081_TCP_PROTO`, "tcp"],
        [`${prefix}_PORT_8081_TCP_PORT`, "8081"],
        [`${prefix}_PORT_8081_TCP_ADDR`, "10.0.0.1"],
      ];
    }),
  );
  const env = { POINTS_HOST: "0.0.0.0", ORDERS_SENDER_CONCURRENCY: "3" };
  expect(withoutServiceLinks({ ...links, ...env })).toEqual(env);
  const { code, out, err } = await runTodoke("config points --json", { ...links, DATABASE_URL: "postgres://db/x" });
  expect({ code, err }).toEqual({ code: 0, err: "" });
  const { settings, errors, unknown } = JSON.parse(out);
  expect([errors, unknown]).toEqual([[], []]);
  expect(settings).toContainEqual({ service: "points", name: "POINTS_PORT", value: "8085", source: "default" });
});

test("a misspelt setting stops serve, and only that of a service that is served", async () => {
  const env = { DATABASE_URL: "postgres://db.example/x", POINTS_LEASE_M: "1", ORDERS_LEASE_M: "1" };
  expect(await runTodoke("serve points", env)).toMatchObject({
    code: 2,
    err: '✗ POINTS_LEASE_M is not a setting. Did you mean "POINTS_LEASE_MS"?\n',
  });
});
