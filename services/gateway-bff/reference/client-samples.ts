/** What a program with `@todoke/client` writes to call an operation, with the values of its example. */
import { gatewayOperations, int64Names, namespaces, serviceOperations } from "@todoke/client/operations";
import type { Example } from "@todoke/contracts/api";

type Service = keyof typeof serviceOperations;

export interface ClientCall {
  readonly method: string;
  readonly path: string;
  readonly operationId: string;
  readonly request: Example["request"];
  /** The names of the security schemes. */
  readonly schemes: readonly string[];
  /** Of the gateway. */
  readonly origin: string;
  addressOf(service: string): string;
}

export interface Sample {
  readonly label: string;
  readonly source: string;
}

interface Method {
  /** "points.spend" */
  readonly name: string;
  readonly flags: readonly string[];
}

/** None for an operation that the client does not have, such as a page. */
export function clientSamples(call: ClientCall): Sample[] {
  if (call.operationId === "fetchSessionToken") return [{ label: "Client (player)", source: logInSource(call.origin) }];
  const route = `${call.method} ${call.path}`;
  const ofPlayer = gatewayMethods.get(route);
  const service = call.schemes.includes("apiKey") ? serviceMethods.get(route) : undefined;
  return [
    ...(ofPlayer ? [{ label: "Client (player)", source: playerSource(ofPlayer, call) }] : []),
    ...(service ? [{ label: "Client (back-end)", source: backendSource(service, call) }] : []),
  ];
}

const toMethods = (namespace: string, lines: Readonly<Record<string, string>>) =>
  Object.entries(lines).map(([name, line]): readonly [route: string, method: Method] => {
    const [method, path, ...flags] = line.split(" ");
    return [`${method} ${path}`, { name: `${namespace}.${name}`, flags }];
  });

const gatewayMethods: ReadonlyMap<string, Method> = new Map(
  Object.entries(gatewayOperations).flatMap(([namespace, lines]) => toMethods(namespace, lines)),
);

interface ServiceMethod extends Method {
  readonly service: string;
}

const serviceMethods: ReadonlyMap<string, ServiceMethod> = new Map(
  (Object.keys(serviceOperations) as Service[]).flatMap((service) =>
    toMethods(namespaces[service], serviceOperations[service]).map(
      ([route, method]) => [route, { ...method, service }] as const,
    ),
  ),
);

const logInSource = (origin: string): string => `import { logIn } from "@todoke/client/login";

const session = await logIn({
  gateway: ${quoted(origin)},
  openBrowser: (url) => console.log(\`Open \${url}\`),
});
console.log(session.expires_at);`;

const playerSource = (method: Method, call: ClientCall): string =>
  program(method, call, [`gateway: ${quoted(call.origin)}`, `session: process.env.TODOKE_SESSION ?? ""`]);

const backendSource = ({ service, ...method }: ServiceMethod, call: ClientCall): string =>
  program(method, call, [
    `services: { ${service}: ${quoted(call.addressOf(service))} }`,
    `apiKey: process.env.TODOKE_API_KEY ?? ""`,
  ]);

function program(method: Method, call: ClientCall, options: readonly string[]): string {
  return [
    `import { createClient } from "@todoke/client";`,
    "",
    `const todoke = createClient({`,
    ...options.map((option) => `  ${option},`),
    "});",
    useOf(method, `todoke.${method.name}(${argumentsOf(method, call).join(", ")})`),
  ].join("\n");
}

function useOf({ flags }: Method, expression: string): string {
  const print = (names: string, values = names) =>
    `for await (const ${names} of ${expression}) {\n  console.log(${values});\n}`;
  if (flags.includes("stream")) return print("{ id, item }", "id, item.text");
  if (flags.some((flag) => flag.startsWith("items="))) return print("item");
  return `const result = await ${expression};\nconsole.log(result);`;
}

/** Path, query and body are one object. The client makes a key by itself; the sample shows where your own belongs. */
function argumentsOf({ flags }: Method, { path, request }: ClientCall): string[] {
  const { idempotency_key: _, ...body } = (request.body ?? {}) as Readonly<Record<string, unknown>>;
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => [name, request.path?.[name] ?? name]);
  const params = { ...Object.fromEntries(inPath), ...request.query, ...body };
  const ifMatch = request.headers?.["if-match"];
  const options = [
    ...(flags.includes("key") ? ["key: crypto.randomUUID()"] : []),
    ...(ifMatch === undefined ? [] : [`ifMatch: ${quoted(ifMatch)}`]),
  ];
  const needsParams = Object.keys(params).length > 0 || (options.length > 0 && !flags.includes("no-params"));
  return [...(needsParams ? [literal(params)] : []), ...(options.length > 0 ? [`{ ${options.join(", ")} }`] : [])];
}

const int64: ReadonlySet<string> = new Set(int64Names);
const lineMax = 60;

/** As TypeScript writes it: names without quotes, int64 as bigint. */
function literal(value: unknown, name = "", indent = ""): string {
  if (typeof value === "number" && int64.has(name)) return `${value}n`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const inner = `${indent}  `;
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{ ", " }"];
  const parts = Object.entries(value).map(([key, each]) =>
    Array.isArray(value) ? literal(each, "", inner) : `${nameOf(key)}: ${literal(each, key, inner)}`,
  );
  if (parts.length === 0) return open.trim() + close.trim();
  const line = `${open}${parts.join(", ")}${close}`;
  if (line.length <= lineMax && !line.includes("\n")) return line;
  return `${open.trim()}\n${parts.map((part) => `${inner}${part},\n`).join("")}${indent}${close.trim()}`;
}

const nameOf = (key: string): string => (/^[A-Za-z_]\w*$/.test(key) ? key : JSON.stringify(key));
const quoted = (text: string): string => JSON.stringify(text);
