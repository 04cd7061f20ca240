/**
 * Every metric and span that a package or a service of ours names. A service that names some has a telemetry.ts with its
 * catalogue, and is found here by that.
 */
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
