/**
 * `npm run dashboard` writes deploy/grafana/todoke.json from dashboard/panels.ts: a panel is a few words there and forty lines in the
 * file. A test compares the two.
 */
import { writeFileSync } from "node:fs";
import type { Panel } from "./dashboard/panel.ts";
import { rows } from "./dashboard/panels.ts";

const datasource = { type: "prometheus", uid: "$datasource" };

/** A level of a metric as Grafana colours it. */
function thresholdsOf([warn, bad]: readonly [number, number]) {
  const steps = [
    { color: "green", value: null },
    ...(warn < bad ? [{ color: "orange", value: warn }] : []),
    { color: "red", value: bad },
  ];
  return { thresholds: { mode: "absolute", steps } };
}

const columns = 24;

function toGrafana(each: Panel, { id, x, y }: { readonly id: number; readonly x: number; readonly y: number }) {
  const { title, description, unit, targets, thresholds, stat } = each;
  return {
    id,
    type: stat ? "stat" : "timeseries",
    title,
    description,
    datasource,
    gridPos: { h: heightOf(each), w: widthOf(each), x, y },
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        ...(thresholds && thresholdsOf(thresholds)),
        ...(thresholds && !stat && { custom: { thresholdsStyle: { mode: "dashed" } } }),
      },
      overrides: [],
    },
    ...(stat && {
      options: {
        colorMode: thresholds ? "background" : "value",
        textMode: targets[0]?.[1].startsWith("{{") ? "value_and_name" : "value",
      },
    }),
    targets: targets.map(([expr, legendFormat], index) => ({
      refId: String.fromCharCode(65 + index),
      expr,
      legendFormat,
      ...(stat && { instant: true }),
    })),
  };
}

const widthOf = ({ stat }: Panel) => (stat ? 4 : 8);
const heightOf = ({ stat }: Panel) => (stat ? 4 : 8);

/** Puts panels side by side, from `top` on, and returns where they end. */
function arrange(panels: readonly Panel[], firstId: number, top: number) {
  let [x, y] = [0, top];
  let height = 0;
  const placed = panels.map((each, index) => {
    if (x + widthOf(each) > columns) [x, y] = [0, y + height];
    const at = { id: firstId + index, x, y };
    x += widthOf(each);
    height = heightOf(each);
    return toGrafana(each, at);
  });
  return { placed, end: y + height };
}

const services = ["gateway-bff", "account", "entitlement", "notification", "matchmaking", "points", "orders"];

function arrangeRows() {
  const panels: object[] = [];
  let [id, y] = [1, 0];
  for (const [index, row] of rows.entries()) {
    const { placed, end } = arrange(row.panels, id + 1, y + 1);
    const collapsed = index > 0;
    const head = { id, type: "row", title: row.title, collapsed, gridPos: { h: 1, w: columns, x: 0, y } };
    panels.push({ ...head, panels: collapsed ? placed : [] }, ...(collapsed ? [] : placed));
    id += 1 + placed.length;
    y = collapsed ? y + 1 : end;
  }
  return panels;
}

export const dashboard = {
  title: "Todoke",
  uid: "todoke",
  description: "Written by npm run dashboard from scripts/deploy/dashboard.ts. Metrics: docs/telemetry.md",
  schemaVersion: 41,
  version: 2,
  editable: true,
  refresh: "30s",
  time: { from: "now-1h", to: "now" },
  timezone: "browser",
  graphTooltip: 1,
  annotations: {
    list: [
      {
        name: "Deploys",
        datasource,
        enable: true,
        iconColor: "blue",
        // A version that was not there two minutes ago.
        expr: `count by (service_version) (target_info{job="todoke"}) unless count by (service_version) (target_info{job="todoke"} offset 2m)`,
        step: "60s",
        titleFormat: "Deploy of {{service_version}}",
      },
    ],
  },
  templating: {
    list: [
      { name: "datasource", label: "Prometheus", type: "datasource", query: "prometheus" },
      {
        name: "service",
        label: "Service",
        type: "custom",
        query: services.join(","),
        multi: true,
        includeAll: true,
        allValue: "[a-z-]+",
        current: { text: "All", value: "$__all" },
      },
    ],
  },
  panels: arrangeRows(),
};

export const dashboardText = `${JSON.stringify(dashboard, null, 2)}\n`;

if (import.meta.main) writeFileSync(new URL("../../deploy/grafana/todoke.json", import.meta.url), dashboardText);
