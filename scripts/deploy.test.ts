import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { prometheusName } from "@todoke/http";
import { expect, test } from "vitest";
import { groupingsOf, metricsOf } from "./deploy/metrics-of.ts";
import { readRules } from "./deploy/rules.ts";
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

const usualLabels = ["instance", "job"]; // Prometheus adds these itself.

/** A sentence for each metric or label that is asked for and does not exist. */
function unknownIn(expr: string, series: ReadonlyMap<string, readonly string[]>): string[] {
  const asked = metricsOf(expr);
  const known = new Set(asked.flatMap(({ metric }) => series.get(metric) ?? []).concat(usualLabels));
  return [
    ...asked.filter(({ metric }) => !series.has(metric)).map(({ metric }) => `there is no metric ${metric}`),
    ...asked.flatMap(({ metric, labels }) =>
      labels.filter((label) => !known.has(label)).map((label) => `${metric} has no label ${label}`),
    ),
    ...groupingsOf(expr)
      .filter((label) => !known.has(label))
      .map((label) => `nothing has the label ${label}`),
  ];
}

test("every metric and label that an alert or a panel asks for is in a catalogue", async () => {
  const series = await seriesOnMetrics();
  for (const { record } of rules) if (record) series.set(record, []);
  expect(rules.length).toBeGreaterThan(20);
  expect(targets.length).toBeGreaterThan(10);
  expect(rules.flatMap(({ expr }) => unknownIn(expr, series))).toEqual([]);
  expect(targets.flatMap(({ expr }) => unknownIn(expr, series))).toEqual([]);
});

test("every alert says how urgent it is, what it means, and where to read on", () => {
  const alerts = rules.filter(({ alert }) => alert !== undefined);
  const incomplete = alerts.filter(({ severity = "", summary, runbook = "" }) => {
    const [page = "", anchor = ""] = runbook.split("#");
    const leads = existsSync(join(root, page)) && anchorsOf(read(page)).has(anchor);
    return !["page", "ticket"].includes(severity) || !summary || !leads;
  });
  expect(incomplete).toEqual([]);
});

test("docs/slo.md names every alert, and no other", () => {
  const named = new Set(read("docs/slo.md").match(/\bTodoke[A-Z]\w+/g));
  expect([...named].sort()).toEqual([...new Set(rules.flatMap(({ alert }) => alert ?? []))].sort());
});

test("each check finds what is planted", async () => {
  const series = await seriesOnMetrics();
  expect(unknownIn('sum by (nobody) (rate(todoke_worker_jobs_total{colour="red"}[5m])) > todoke_gone', series)).toEqual(
    ["there is no metric todoke_gone", "todoke_worker_jobs_total has no label colour", "nothing has the label nobody"],
  );
  expect(() => readRules("groups:\n  - name: a\n    rules:\n      - alert: A\n        exp: 1\n")).toThrow("line 5");
});
