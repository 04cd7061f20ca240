/** The settings that our pages describe, to compare deployment files with. */
import { globSync, readFileSync } from "node:fs";

const pages = [
  "packages/cli/README.md",
  "packages/service/README.md",
  "services/*/README.md",
  "docs/telemetry.md",
  "docs/guides/let-players-in.md",
  "docs/guides/one-database-per-service.md", // PGPASSFILE
];

/** Names of variables, some of them with the placeholder `<SERVICE>`. */
export function documentedSettings(root: string): ReadonlySet<string> {
  const texts = globSync(pages, { cwd: root }).map((page) => readFileSync(`${root}/${page}`, "utf8"));
  const named = texts.flatMap((text) => text.match(/(?:<SERVICE>_|\b)[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*\b/g) ?? []);
  return new Set(named);
}

/** Names and ports of the services, as the command declares them. */
export function listServices(root: string): readonly { readonly name: string; readonly port: number }[] {
  const text = readFileSync(`${root}/packages/cli/services.ts`, "utf8");
  return [...text.matchAll(/^ {4}name: "([\w-]+)",\n {4}port: (\d+),$/gm)].map(([, name = "", port]) => ({
    name,
    port: Number(port),
  }));
}

const servicePrefix = /^(ACCOUNT|ENTITLEMENT|GATEWAY_BFF|MATCHMAKING|NOTIFICATION|ORDERS|POINTS)_/;

export const isDocumented = (settings: ReadonlySet<string>, name: string): boolean =>
  settings.has(name) || settings.has(name.replace(servicePrefix, "<SERVICE>_"));
