/** All metrics and spans of packages and services; a service declares its own in telemetry.ts. */
import { globSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Metric } from "@todoke/kernel/telemetry";

const root = fileURLToPath(new URL("../..", import.meta.url));

export interface TelemetryNames {
  readonly metrics: Readonly<Record<string, Metric>>;
  readonly spans: readonly string[];
}

export async function telemetryNames(): Promise<TelemetryNames> {
  const files = globSync(["packages/{http,service,kernel/telemetry}/names.ts", "services/*/telemetry.ts"], {
    cwd: root,
  });
  const catalogues = await Promise.all(files.map((file) => import(pathToFileURL(join(root, file)).href)));
  return {
    metrics: Object.assign({}, ...catalogues.map(({ metricCatalogue = {} }) => metricCatalogue)),
    spans: catalogues.flatMap(({ spanNames = {} }) => Object.values<string>(spanNames)),
  };
}
