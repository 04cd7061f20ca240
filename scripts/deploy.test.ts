import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { demoUsers } from "@todoke/identity";
import { prometheusName } from "@todoke/service";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { readCompose } from "./deploy/compose.ts";
import { rows } from "./deploy/dashboard/panels.ts";
import { dashboard } from "./deploy/dashboard.ts";
import { parsePromQl } from "./deploy/promql.ts";
import { type Rule, readRules, readTestedAlerts } from "./deploy/rules.ts";
import { anchorsOf } from "./docs/markdown.ts";
import { telemetryNames } from "./docs/telemetry-names.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");

/** The services with their default ports, as the command has them. */
const services = [...read("packages/cli/services.ts").matchAll(/name: "([a-z-]+)",\s+port: (\d+)/g)].map(
  ([, name = "", port]) => ({ name, port: Number(port) }),
);

const rules = readRules(read("deploy/prometheus/rules.yaml"));
const alerts = rules.filter(({ alert }) => alert !== undefined);
const targets = [
  ...rows.flatMap(({ panels }) => panels.flatMap(({ targets }) => targets)),
  ...dashboard.annotations.list.map(({ expr }) => [expr] as const),
].map(([expr]) => fillIn(expr));

/** As Grafana fills in the variables when all services are chosen. */
function fillIn(expr: string): string {
  return expr.replaceAll("$__rate_interval", "1m").replaceAll("$service", "[a-z-]+");
}

/** Every series on /metrics, with its labels. */
async function seriesOnMetrics(): Promise<Map<string, readonly string[]>> {
  const { metrics } = await telemetryNames();
  const series = new Map<string, readonly string[]>();
  for (const [name, metric] of Object.entries(metrics)) {
    const labels = metric.attributes.map((attribute) => attribute.replaceAll(".", "_"));
    const full = prometheusName(name, metric);
    if (metric.kind !== "histogram") series.set(full, labels);
    else {
      series.set(`${full}_bucket`, [...labels, "le"]);
      for (const part of ["sum", "count"]) series.set(`${full}_${part}`, labels);
    }
  }
  // Of Prometheus itself, and of the OpenTelemetry exporter.
  return series.set("up", []).set("ALERTS", ["alertname", "alertstate"]).set("target_info", ["service_version"]);
}

const prometheusLabels = ["__name__", "instance", "job"]; // Prometheus adds these itself.

/** One sentence per metric or label that does not exist. */
function findUnknown(expr: string, series: ReadonlyMap<string, readonly string[]>): string[] {
  const { selectors, groupings } = parsePromQl(expr);
  const found = selectors.map(({ metric, labels }) => {
    const names = [...series.keys()].filter((name) =>
      typeof metric === "string" ? name === metric : metric.test(name),
    );
    return { metric, labels, names, known: [...names.flatMap((name) => series.get(name) ?? []), ...prometheusLabels] };
  });
  const known = found.flatMap((each) => each.known);
  return [
    ...found.filter(({ names }) => names.length === 0).map(({ metric }) => `there is no metric ${metric}`),
    ...found.flatMap(({ metric, labels, known }) =>
      labels.filter((label) => !known.includes(label)).map((label) => `${metric} has no label ${label}`),
    ),
    ...groupings.filter((label) => !known.includes(label)).map((label) => `nothing has the label ${label}`),
  ];
}

test("every metric and label of alerts and panels is in a catalogue", async () => {
  const series = await seriesOnMetrics();
  for (const { record } of rules) if (record) series.set(record, []);
  expect(rules.length).toBeGreaterThan(20);
  expect(targets.length).toBeGreaterThan(10);
  expect(rules.flatMap(({ expr }) => findUnknown(expr, series))).toEqual([]);
  expect(targets.flatMap((expr) => findUnknown(expr, series))).toEqual([]);
});

test("the dashboard in deploy/grafana is the one of scripts/deploy/dashboard.ts: npm run dashboard writes it", () => {
  expect(JSON.parse(read("deploy/grafana/todoke.json"))).toEqual(JSON.parse(JSON.stringify(dashboard)));
  expect(services).toHaveLength(7);
  const names = dashboard.templating.list.find(({ name }) => name === "service")?.query?.split(",") ?? [];
  expect(names.sort()).toEqual(services.map(({ name }) => name).sort());
  expect(rows.map(({ title }) => title)).toEqual(expect.arrayContaining(names));
});

const runbookBase = "https://todoke.example/";

/** The text of a section, with its subsections. */
function sectionOf(markdown: string, anchor: string): string {
  const lines = markdown.split("\n");
  const isHeading = (line: string) => /^#+ /.test(line);
  const start = lines.findIndex((line) => isHeading(line) && anchorsOf(`${line}\n`).has(anchor));
  const end = lines.findIndex((line, index) => index > start && isHeading(line));
  return start < 0 ? "" : lines.slice(start, end < 0 ? undefined : end).join("\n");
}

/** One sentence per alert without a severity, a summary, or a section of the runbook that names it. */
function incompleteAlerts(alerts: readonly Rule[], runbook: string): string[] {
  return alerts.flatMap(({ alert = "", labels = {}, annotations = {} }) => {
    const { summary = "", runbook_url: url = "" } = annotations;
    const [page, anchor = ""] = url.replace(runbookBase, "").split("#");
    return [
      ...(["page", "ticket"].includes(labels.severity ?? "") ? [] : [`${alert} has no severity`]),
      ...(summary === "" ? [`${alert} has no summary`] : []),
      ...(url.startsWith(runbookBase) && page === "docs/runbook.md" ? [] : [`${alert} leads to ${url}`]),
      ...(sectionOf(runbook, anchor).includes(`\`${alert}\``) ? [] : [`no section #${anchor} names ${alert}`]),
    ];
  });
}

test("every alert has a severity, a summary, and a link to a section of the runbook that names it", () => {
  expect(incompleteAlerts(alerts, read("docs/runbook.md"))).toEqual([]);
});

test("the rule tests see every alert fire, and not fire", () => {
  const tested = readTestedAlerts(read("deploy/prometheus/rules-test.yaml"));
  const names = [...new Set(alerts.flatMap(({ alert }) => alert ?? []))];
  expect(names.filter((name) => !tested.firing.has(name))).toEqual([]);
  expect(names.filter((name) => !tested.silent.has(name))).toEqual([]);
});

test("prometheus.yaml loads the rules and scrapes the ops listener of every service", () => {
  const { rule_files, scrape_configs } = parse(read("deploy/prometheus/prometheus.yaml"));
  expect(rule_files).toEqual(["rules.yaml"]);
  expect(scrape_configs).toHaveLength(1);
  expect(scrape_configs[0].job_name).toBe("todoke");
  const ports = services.map(({ port }) => `127.0.0.1:${port + 1_000}`);
  expect(scrape_configs[0].static_configs.flatMap(({ targets }: { targets: string[] }) => targets).sort()).toEqual(
    ports.sort(),
  );
});

/** Prometheus takes two alerts with the same name and labels for one. */
const identityOf = ({ alert, record, labels }: Rule) => JSON.stringify([alert, record, labels]);

test("no two rules have the same name and labels", () => {
  const identities = rules.map(identityOf);
  expect(identities.filter((identity, index) => identities.indexOf(identity) !== index)).toEqual([]);
});

test("docs/slo.md names exactly the alerts", () => {
  const named = new Set(read("docs/slo.md").match(/\bTodoke[A-Z]\w+/g));
  expect([...named].sort()).toEqual([...new Set(rules.flatMap(({ alert }) => alert ?? []))].sort());
});

test("the Keycloak realm has the gateway's client and the users of `npm start`", () => {
  const { clients, users } = JSON.parse(read("deploy/keycloak/realm-todoke.json"));
  expect(clients).toHaveLength(1);
  expect(clients[0]).toMatchObject({
    clientId: "todoke",
    publicClient: false,
    secret: `\${OIDC_CLIENT_SECRET}`, // Keycloak fills it in from its environment.
    standardFlowEnabled: true,
    implicitFlowEnabled: false,
    directAccessGrantsEnabled: false,
    redirectUris: ["http://localhost:8080/login/callback"],
    attributes: {
      "pkce.code.challenge.method": "S256",
      "backchannel.logout.url": expect.stringMatching(/:8080\/login\/backchannel-logout$/),
      "backchannel.logout.session.required": "true",
    },
  });
  const logins = users.map(({ username, email, credentials }: Record<string, { value: string }[]>) => {
    return { username, email, password: credentials?.[0]?.value };
  });
  expect(logins).toEqual(demoUsers.map(({ username, email, password }) => ({ username, email, password })));
  const admin = users.find(({ username }: { username: string }) => username === "admin");
  expect(read("deploy/compose.keycloak.yaml")).toContain(`ACCOUNT_ADMINS="$OIDC_ISSUER ${admin.id}"`);
});

/** One sentence per unpinned image, public port or plain secret. */
function composeErrors(yaml: string): string[] {
  const { images, ports, secrets } = readCompose(yaml);
  return [
    ...images.filter((image) => !/:\d+(\.\d+)+$/.test(image)).map((image) => `${image} is not pinned`),
    ...ports.filter((port) => !port.startsWith('"127.0.0.1:')).map((port) => `${port} is open to other machines`),
    ...secrets.filter((value) => !/^\$\{\w+:\?.+\}$/.test(value)).map((value) => `${value} is a plain secret`),
  ];
}

test("compose files pin images, listen on loopback only and contain no secret", () => {
  const files = globSync("deploy/compose*.yaml", { cwd: root });
  expect(files.length).toBeGreaterThan(0);
  for (const file of files) {
    const { images, ports, secrets } = readCompose(read(file));
    expect([images.length, ports.length, secrets.length].every((count) => count > 0)).toBe(true);
    expect(composeErrors(read(file))).toEqual([]);
  }
});

test("each check finds a planted error", async () => {
  const series = await seriesOnMetrics();
  expect(
    findUnknown('sum by (absent) (rate(todoke_worker_jobs_total{colour="red"}[5m])) > todoke_gone', series),
  ).toEqual([
    "there is no metric todoke_gone",
    "todoke_worker_jobs_total has no label colour",
    "nothing has the label absent",
  ]);
  const careless = `
    image: postgres:latest
    environment:
      DB_PASSWORD: hunter2
    ports:
      - "8080:8080"`;
  expect(composeErrors(careless)).toEqual([
    "postgres:latest is not pinned",
    '"8080:8080" is open to other machines',
    "hunter2 is a plain secret",
  ]);
  expect(() => parsePromQl("sum(rate(todoke_worker_jobs_total[5m])")).toThrow("PromQL cannot be parsed");
  const alert = { alert: "TodokeX", expr: "up", annotations: { runbook_url: `${runbookBase}docs/runbook.md#there` } };
  expect(incompleteAlerts([alert], "## Here\n\n`TodokeX`\n\n## There\n")).toEqual([
    "TodokeX has no severity",
    "TodokeX has no summary",
    "no section #there names TodokeX",
  ]);
});
