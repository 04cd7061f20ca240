/**
 * One API document of all services, for the reference page and for generators. Its server is the gateway; an operation that
 * back-ends call at a service names that server too. An operation that the gateway passes on appears once, for both.
 */

export interface Source {
  /** The service: "points". */
  readonly name: string;
  /** Its address, if readers may know it; the gateway has "/". */
  readonly url: string;
  readonly document: ApiDocument;
}

type Named = Readonly<Record<string, unknown>>;

export interface Operation {
  readonly operationId: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly Named[];
  readonly security?: readonly Named[];
  readonly servers?: readonly { readonly url: string; readonly description: string }[];
  readonly requestBody?: unknown;
  readonly responses: Readonly<Record<string, Response>>;
  /** Only other services may call it. */
  readonly "x-internal"?: true;
  readonly "x-passes-on"?: true;
}

interface Response extends Named {
  readonly content?: Readonly<Record<string, { readonly schema?: { readonly oneOf?: readonly Named[] } & Named }>>;
}

export interface ApiDocument {
  readonly info: { readonly version: string } & Named;
  readonly tags?: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Readonly<Record<string, Named>>;
}

export const gatewayName = "gateway-bff";

interface Found {
  readonly source: Source;
  readonly operation: Operation;
}

/** The gateway's document is the first. */
export function mergeDocuments(sources: readonly Source[]): ApiDocument & Named {
  const found = new Map<string, Found[]>();
  for (const source of sources)
    for (const [path, item] of Object.entries(source.document.paths))
      for (const [method, operation] of Object.entries(item))
        found.set(`${method} ${path}`, [...(found.get(`${method} ${path}`) ?? []), { source, operation }]);
  const paths: Record<string, Record<string, Operation>> = {};
  const byId = new Map(
    [...found.values()].flat().map((each) => [`${each.source.name} ${each.operation.operationId}`, each]),
  );
  for (const [key, each] of found) {
    const [method = "", path = ""] = key.split(" ");
    const merged = mergeOperation(each, (id) => serviceOperation(id, byId));
    if (merged && !isReplaced(each, found)) paths[path] = { ...paths[path], [method]: forBrowsers(method, merged) };
  }
  const [gateway] = sources;
  const used = new Set(Object.values(paths).flatMap((item) => Object.values(item).flatMap(({ tags = [] }) => tags)));
  const tags = sources.flatMap(({ document }) => document.tags ?? []).filter(({ name }) => used.has(name));
  return {
    openapi: "3.1.0",
    info: { title: "Todoke", version: gateway?.document.info.version ?? "", description: introduction(sources) },
    servers: [{ url: "/", description: "The gateway, for players." }],
    tags: [...new Map(tags.map((tag) => [tag.name, tag])).values()],
    "x-tagGroups": tagGroups(new Set(tags.map(({ name }) => name))),
    paths,
    components: mergeComponents([...sources, { document: ofBrowsers }], paths),
  };
}

/** The operation of that id at a service, with what it really returns. */
function serviceOperation(id: string, byId: ReadonlyMap<string, Found>): Found | undefined {
  return [...byId].find(([key]) => key.endsWith(` ${id}`) && !key.startsWith(`${gatewayName} `))?.[1];
}

/** An operation that only the gateway may call at a service, and passes on under a path of its own. */
function isReplaced(each: readonly Found[], found: ReadonlyMap<string, readonly Found[]>): boolean {
  const [{ source, operation } = each[0] as Found] = each;
  if (source.name === gatewayName || !isInternal(operation)) return false;
  return [...found.values()]
    .flat()
    .some((other) => other.source.name === gatewayName && other.operation.operationId === operation.operationId);
}

const schemesOf = ({ security = [] }: Operation) => security.flatMap((each) => Object.keys(each));
const isInternal = (operation: Operation) => {
  const schemes = schemesOf(operation);
  return schemes.length > 0 && schemes.every((name) => name === "token");
};

function mergeOperation(each: readonly Found[], find: (id: string) => Found | undefined): Operation | undefined {
  const atGateway = each.find(({ source }) => source.name === gatewayName);
  // Under another id at the same path, a service has its part of what the gateway puts together.
  const isSame = ({ operation }: Found) => !atGateway || operation.operationId === atGateway.operation.operationId;
  const atServices = each.filter((one) => one.source.name !== gatewayName && isSame(one));
  const [service] = atServices;
  if (!atGateway) return service && atServiceOnly(service, atServices);
  const passedOn = service ?? (atGateway.operation["x-passes-on"] && find(atGateway.operation.operationId));
  return passedOn ? passOn(atGateway.operation, passedOn, atServices) : cleaned(atGateway.operation);
}

/** A form of another site cannot send this header. The page sends it because it is required. */
const ofBrowsers = {
  components: {
    parameters: {
      TodokeRequest: {
        name: "x-todoke-request",
        in: "header",
        required: true,
        description: "Needed with the session cookie, and ignored with a token.",
        schema: { type: "string", const: "1" },
        example: "1",
      },
    },
  },
};

function forBrowsers(method: string, operation: Operation): Operation {
  if (method === "get" || !schemesOf(operation).includes("cookie")) return operation;
  const header = { $ref: "#/components/parameters/TodokeRequest" };
  return { ...operation, parameters: [...(operation.parameters ?? []), header] };
}

const cleaned = ({ "x-passes-on": _, ...operation }: Operation): Operation => operation;

/** Back-ends call it with an API key; the tokens of its other callers are the gateway's. */
function atServiceOnly({ operation }: Found, all: readonly Found[]): Operation {
  if (isInternal(operation)) return { ...operation, servers: serversOf(all), "x-internal": true };
  return { ...operation, ...withoutToken(operation), servers: serversOf(all) };
}

const withoutToken = ({ security }: Operation) =>
  security && { security: security.filter((each) => !("token" in each)) };

const serversOf = (all: readonly Found[]) =>
  all.map(({ source: { name, url } }) => {
    const description = `The ${name} service, for back-ends.`;
    const address = { default: name, description: "The address of the service in your deployment." };
    return url ? { url, description } : { url: "https://{address}", description, variables: { address } };
  });

/** The bodies are the service's; the gateway adds its own refusals. */
function passOn(gateway: Operation, { operation: own }: Found, atServices: readonly Found[]): Operation {
  const forBackends = atServices.filter(({ operation }) => !isInternal(operation));
  const security = [
    ...(gateway.security ?? []),
    ...forBackends.flatMap(({ operation }) => withoutToken(operation)?.security ?? []),
  ];
  return {
    ...cleaned(gateway),
    description: [gateway.description, ...forBackends.map(describeBackends)].filter(Boolean).join(" "),
    security,
    responses: { ...gateway.responses, ...mergeResponses(gateway.responses, own.responses) },
    ...(forBackends.length > 0 && {
      servers: [{ url: "/", description: "The gateway, for players." }, ...serversOf(forBackends)],
    }),
  };
}

const describeBackends = ({ source, operation: { description = "" } }: Found): string =>
  /Allowed for [^.]*\.$/.exec(description)?.[0].replace("Allowed", `At ${source.name}: allowed`) ?? "";

function mergeResponses(ofGateway: Operation["responses"], own: Operation["responses"]): Record<string, Response> {
  return Object.fromEntries(
    Object.entries(own).map(([status, response]) => {
      const outer = ofGateway[status];
      if (/^2/.test(status)) return [status, { ...response, ...(outer?.headers ? { headers: outer.headers } : {}) }];
      return [status, outer ? mergeProblems(outer, response) : response];
    }),
  );
}

const problemType = "application/problem+json";

interface ProblemSchema extends Named {
  readonly oneOf?: readonly Named[];
}

/** Both lists of problems; a response without a list is any Problem. */
function mergeProblems(a: Response, b: Response): Response {
  const [left, right] = [listOf(a), listOf(b)];
  if (!left || !right) return a;
  const names = [...new Set([...left, ...right].map(({ $ref }) => String($ref)))];
  const lines = [a, b].flatMap(({ description }) =>
    String(description)
      .split("\n")
      .filter((line) => line.startsWith("- ")),
  );
  const [first = ""] = String(a.description).split("\n");
  const schema = names.length === 1 ? { $ref: names[0] } : { oneOf: names.map(($ref) => ({ $ref })) };
  return {
    ...a,
    description: [first, "", ...new Set(lines)].join("\n"),
    content: { [problemType]: { schema } },
  };
}

function listOf({ content }: Response): readonly Named[] | undefined {
  const schema: ProblemSchema | undefined = content?.[problemType]?.schema;
  return schema && (schema.oneOf ?? [schema]);
}

/** Names are unique over all services; components that no operation uses are left out. */
function mergeComponents(
  sources: readonly { readonly document: Pick<ApiDocument, "components"> }[],
  paths: unknown,
): Record<string, Named> {
  const all: Record<string, Record<string, unknown>> = {};
  for (const { document } of sources)
    for (const [kind, named] of Object.entries(document.components)) all[kind] = { ...named, ...all[kind] };
  const used = new Set<string>();
  const visit = (value: unknown): void => {
    for (const ref of refsIn(value)) {
      if (used.has(ref)) continue;
      used.add(ref);
      const [kind = "", name = ""] = ref.split("/").slice(2);
      visit(all[kind]?.[name]);
    }
  };
  visit(paths);
  const isUsed = (kind: string, name: string) => kind === "securitySchemes" || used.has(`#/components/${kind}/${name}`);
  return Object.fromEntries(
    Object.entries(all).map(([kind, named]) => [
      kind,
      Object.fromEntries(
        Object.entries(named)
          .filter(([name]) => isUsed(kind, name))
          .sort(([a], [b]) => (a < b ? -1 : 1)),
      ),
    ]),
  );
}

function refsIn(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) =>
    key === "$ref" && typeof each === "string" ? [each] : refsIn(each),
  );
}

const groups: Readonly<Record<string, readonly string[]>> = {
  "Players and back-ends": ["Entitlements", "Points", "Notifications", "Queues", "Tickets", "Account"],
  Players: ["Sessions"],
  "Back-ends": ["Holds", "Reservations", "Schedules", "Orders", "Trading state"],
};

/** All other operations are for operators. */
function tagGroups(used: ReadonlySet<string>) {
  const grouped = Object.entries(groups).map(([name, tags]) => ({ name, tags: tags.filter((tag) => used.has(tag)) }));
  const rest = [...used].filter((tag) => !Object.values(groups).flat().includes(tag));
  return [...grouped, { name: "Operators", tags: rest }].filter(({ tags }) => tags.length > 0);
}

function introduction(sources: readonly Source[]): string {
  const services = sources.filter(({ name }) => name !== gatewayName);
  const pages = services.map(({ name, url }) => (url ? `[${name}](${url}/docs)` : name)).join(", ");
  return `All operations of ${services.length} services and their gateway.

**Players** call the gateway. A browser has a session cookie after \`/login\`; a program sends the session token of \`/login/token\`. On this page you can send these requests as the player who is logged in at this address ([log in](/login?returnTo=/docs)).

**Back-ends** call the services with an API key: \`Authorization: Bearer tdk_…\`. The server of each operation is beside it. A page may only send requests to its own address, so send these from the service's own page: ${pages}. Or copy the curl line.

**Commands are safe to repeat.** Send an \`Idempotency-Key\` and repeat it in every retry: the command takes effect once, and every response is the same to the byte. A replay has \`Idempotency-Replayed: true\`.

**Errors** are \`application/problem+json\`. Branch on \`code\`; every operation lists its own. After a 503, or no response, retry with the same key.

**Numbers** of the format \`int64\` can be larger than 2^53: read them exactly.

Events are described at [/asyncapi.json](/asyncapi.json).`;
}
