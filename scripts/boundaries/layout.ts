/**
 * The layout that all services share, so that a newcomer who knows one service finds their way in every other.
 *
 *   main → routes, deps → events, workers → commands → store and the folders of its own domain
 *
 * Imports go down only. Types may be imported from anywhere, because they load nothing. CONTRIBUTING.md describes each folder.
 */
import { posix } from "node:path";
import type { SourceFile } from "./rules.ts";
import { parseSource } from "./source.ts";

const rootFiles = ["main", "config", "deps", "problems", "telemetry", "testing", "index"];
const sharedFolders = ["routes", "commands", "events", "workers", "store", "migrations"];

/** Folders of one service's domain. They contain neither SQL, nor background loops, nor handlers of events. */
export const domainFolders: Readonly<Record<string, readonly string[]>> = {
  account: [],
  entitlement: [],
  "gateway-bff": [
    "guard",
    "language",
    "limits",
    "oidc",
    "page",
    "profile",
    "reference",
    "sessions",
    "staff",
    "upstreams",
    "user-inbox",
  ],
  matchmaking: ["forming", "queue", "rules", "simulator"],
  notification: ["senders", "stream"],
  orders: ["brokers", "instruments", "order", "simulator"],
  points: ["ledger", "schedules"],
};

/** Files every service has. */
export const requiredFiles = ["README.md", "package.json", "main.ts", "problems.ts", "telemetry.ts"];

/** The paper broker simulates the other side of a trade, in tables of its own. */
const mayHaveSql = /^services\/orders\/brokers\/paper\/store\//;

const layers: readonly (readonly string[])[] = [
  ["store", "domain"],
  ["config", "telemetry"],
  ["commands"],
  ["events", "workers"],
  ["routes", "deps"],
  ["main"],
  ["index"],
];
/** Read or called from every layer. */
const leaves = ["config", "problems", "telemetry"];

const sql = /(^|\n)\s*(select\s|insert into\s|delete from\s|with \w+ as\b)|\bupdate\s+[\w.]+(\s+(as\s+)?\w+)?\s+set\s/;

const loop = /\b(startLoop|createWorker|createDirectWorker)(<\w+>)?\(/;
/** The loops of telemetry read gauges. */
const mayHaveLoops = ["main", "telemetry", "workers"];

/** All layout violations in a file, as sentences. */
export function findLayoutViolations(file: SourceFile): readonly string[] {
  const servicePath = parseServicePath(file.path);
  if (servicePath === undefined) return [];
  const { service, first, rest } = servicePath;
  const name = first.replace(/(\.test)?\.ts$/, "");
  if (rest === undefined && first.endsWith(".ts") && !rootFiles.includes(name))
    return [`${file.path}: a service has only ${rootFiles.join(", ")} at its root; the rest is in a folder`];
  if (rest !== undefined && ![...sharedFolders, ...(domainFolders[service] ?? [])].includes(first))
    return [`${file.path}: ${first}/ is neither a folder of every service nor of the domain of ${service}`];
  if (!file.path.endsWith(".ts") || isTestCode(file.path)) return [];
  return [...commandViolations(file, servicePath), ...contentViolations(file)];
}

/** `commands/grant-entitlement.ts` exports `grantEntitlement`. */
function commandViolations({ path, text }: SourceFile, { first, rest = "" }: ServicePath): readonly string[] {
  if (first !== "commands" || rest.includes("/")) return [];
  const name = camelCase(rest.replace(/\.ts$/, ""));
  return exportsFunction(text, name) ? [] : [`${path} does not export ${name}`];
}

/** A redrive of dead letters is the same command for every table, in packages/service. */
const operationsWithSharedCommand = ["redriveNotification"];

/** `addPoints`, an operation that changes something, is in `commands/add-points.ts` of its service. */
export function findMissingCommands({ path, text }: SourceFile, files: ReadonlySet<string>): readonly string[] {
  const { service, first } = parseServicePath(path) ?? {};
  if (first !== "routes" || isTestCode(path)) return [];
  return [...text.matchAll(/\bapp\.(?:post|put|patch|delete)\(.*?operationId: "(\w+)"/gs)]
    .map(([, operation = ""]) => operation)
    .filter((operation) => !operationsWithSharedCommand.includes(operation))
    .filter((operation) => !files.has(`services/${service}/commands/${kebabCase(operation)}.ts`))
    .map((operation) => `${path}: ${operation} has no commands/${kebabCase(operation)}.ts`);
}

function contentViolations({ path, text }: SourceFile): readonly string[] {
  const { imports, texts } = parseSource(path, text);
  const layer = layerOf(path);
  const upward = imports
    .filter(({ module, isType }) => module.startsWith(".") && !isType)
    .map(({ line, module }) => ({ line, target: posix.join(posix.dirname(path), module) }))
    .filter(({ target }) => !leaves.includes(kindOf(target)) && layerOf(target) > layer)
    .map(({ line, target }) => `${path}:${line} imports ${target}, which is a layer above`);
  if (loop.test(text) && !mayHaveLoops.includes(kindOf(path)))
    return [...upward, `${path} has a background loop: it belongs in workers/`];
  if (kindOf(path) === "store" || mayHaveSql.test(path)) return upward;
  const statements = texts.filter((each) => sql.test(each.text));
  return [...upward, ...statements.map(({ line }) => `${path}:${line} has SQL: it belongs in store/`)];
}

interface ServicePath {
  readonly service: string;
  /** The first folder, or the file itself where it lies at the root of the service. */
  readonly first: string;
  readonly rest: string | undefined;
}

function parseServicePath(path: string): ServicePath | undefined {
  const [top, service, first, ...rest] = path.split("/");
  if (top !== "services" || service === undefined || first === undefined) return undefined;
  return { service, first, rest: rest.length > 0 ? rest.join("/") : undefined };
}

/** "store", "commands", "main", …; "domain" for the folders of one service, and for the payloads of emitted events. */
function kindOf(path: string): string {
  const { first = "", rest = "" } = parseServicePath(path) ?? {};
  if (first === "events" && !rest.startsWith("on-")) return "domain";
  const name = first.replace(/\.ts$/, "");
  return rootFiles.includes(name) || sharedFolders.includes(name) ? name : "domain";
}

const layerOf = (path: string): number => layers.findIndex((kinds) => kinds.includes(kindOf(path)));

const isTestCode = (path: string): boolean => /\.test\.ts$|(^|\/)(testing|conformance)(\/|\.ts$)/.test(path);

const camelCase = (kebab: string): string => kebab.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

const kebabCase = (camel: string): string => camel.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

const exportsFunction = (text: string, name: string): boolean =>
  new RegExp(`^export (async )?(function\\*? ${name}\\b|const ${name} =)`, "m").test(text);
