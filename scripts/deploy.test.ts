import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { demoUsers } from "@todoke/identity";
import { prometheusName } from "@todoke/service";
import { expect, test } from "vitest";
import { groupingsOf, metricsOf } from "./deploy/metrics-of.ts";
import { type Rule, readRules } from "./deploy/rules.ts";
import { anchorsOf } from "./docs/markdown.ts";
import { telemetryNames } from "./docs/telemetry-names.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");

const rules = readRules(read("deploy/prometheus/rules.yaml"));
const { panels } = JSON.parse(read("deploy/grafana/todoke.json")) as {
  panels: { title: string; targets: { expr: string; legendFormat: string }[] }[];
};
const targets = panels.flatMap(({ title, targets }) => targets.map((target) => ({ title, ...target })));

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
  return series;
}

const prometheusLabels = ["instance", "job"]; // Prometheus adds these itself.

/** One sentence per metric or label that does not exist. */
function findUnknown(expr: string, series: ReadonlyMap<string, readonly string[]>): string[] {
  const used = metricsOf(expr);
  const known = new Set(used.flatMap(({ metric }) => series.get(metric) ?? []).concat(prometheusLabels));
  return [
    ...used.filter(({ metric }) => !series.has(metric)).map(({ metric }) => `there is no metric ${metric}`),
    ...used.flatMap(({ metric, labels }) =>
      labels.filter((label) => !known.has(label)).map((label) => `${metric} has no label ${label}`),
    ),
    ...groupingsOf(expr)
      .filter((label) => !known.has(label))
      .map((label) => `nothing has the label ${label}`),
  ];
}

test("every metric and label of alerts and panels is in a catalogue", async () => {
  const series = await seriesOnMetrics();
  for (const { record } of rules) if (record) series.set(record, []);
  expect(rules.length).toBeGreaterThan(20);
  expect(targets.length).toBeGreaterThan(10);
  expect(rules.flatMap(({ expr }) => findUnknown(expr, series))).toEqual([]);
  expect(targets.flatMap(({ expr }) => findUnknown(expr, series))).toEqual([]);
});

test("every alert has a severity, a summary and a runbook link", () => {
  const alerts = rules.filter(({ alert }) => alert !== undefined);
  const incomplete = alerts.filter(({ severity = "", summary, runbook = "" }) => {
    const [page = "", anchor = ""] = runbook.split("#");
    const leads = existsSync(join(root, page)) && anchorsOf(read(page)).has(anchor);
    return !["page", "ticket"].includes(severity) || !summary || !leads;
  });
  expect(incomplete).toEqual([]);
});

/** Prometheus takes two alerts with the same name and labels for one. */
const identityOf = ({ alert, record, severity, window }: Rule) => JSON.stringify([alert, record, severity, window]);

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
      "backchannel.logout.url": `\${GATEWAY_BFF_BACK_CHANNEL}/login/backchannel-logout`,
      "backchannel.logout.session.required": "true",
    },
  });
  const logins = users.map(({ username, email, credentials }: Record<string, { value: string }[]>) => {
    return { username, email, password: credentials?.[0]?.value };
  });
  expect(logins).toEqual(demoUsers.map(({ username, email, password }) => ({ username, email, password })));
  const admin = users.find(({ username }: { username: string }) => username === "admin");
  expect(read("deploy/compose/services.env")).toMatch(new RegExp(`^ACCOUNT_ADMINS=(\\S+) ${admin.id}$`, "m"));
  expect(read("docs/guides/let-players-in.md")).toContain(`ACCOUNT_ADMINS="$OIDC_ISSUER ${admin.id}"`);
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
  expect(() => readRules("groups:\n  - name: a\n    rules:\n      - alert: A\n        exp: 1\n")).toThrow("line 5");
});
