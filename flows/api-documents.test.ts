/** The API documents of all services, as clients and the reference page get them, and how services keep to them. */
import { globSync, readFileSync } from "node:fs";
import { gatewayOperations, namespaces, serviceOperations } from "@todoke/client/operations";
import { aggregateKeyOf, decodeEvent, type EventType, formatEvent } from "@todoke/contracts";
import { type Example, exampleOf } from "@todoke/contracts/api";
import { asyncApiText } from "@todoke/contracts/asyncapi";
import { type Envelope, MemoryBroker, memoryBus } from "@todoke/kernel/bus";
import { freePort } from "@todoke/kernel/testing";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { afterAll, beforeAll, expect, test } from "vitest";
import { problemsIn } from "../scripts/docs/catalogues.ts";
import { apiKeyFor, readDocuments, startAll } from "./all-services.ts";
import { runExamples, withoutExample } from "./api-examples.ts";
import { type ApiDocument, apiFaults } from "./api-faults.ts";
import { createProject, type RunnableProgram } from "./client-samples.ts";

const published: Envelope[] = [];

/** A bus that records published events. */
function recordingBus() {
  const broker = new MemoryBroker();
  return async () => {
    const bus = memoryBus(broker);
    const publish = bus.publish.bind(bus);
    return Object.assign(bus, {
      publish: (events: readonly Envelope[]) => {
        published.push(...events);
        return publish(events);
      },
    });
  };
}

let all: Awaited<ReturnType<typeof startAll>>;
let documents: Readonly<Record<string, ApiDocument>>;
let merged: ApiDocument;
let sent: ReadonlyMap<string, Example>;

beforeAll(async () => {
  // In development the operators' routes are in the documents too.
  const port = String(await freePort());
  const settings = { TODOKE_DEV: "true", GATEWAY_BFF_PORT: port, GATEWAY_BFF_ORIGIN: `http://localhost:${port}` };
  all = await startAll({ settings, openBus: recordingBus() });
  documents = await readDocuments(all);
  merged = (await (await fetch(`${all.gateways[0]}/openapi.json`)).json()) as ApiDocument;
  sent = await runExamples(all, documents);
});
afterAll(() => all[Symbol.asyncDispose]());

const operationsOf = (document: ApiDocument | undefined) =>
  Object.values(document?.paths ?? {}).flatMap((item) => Object.values(item));
const idsOf = (document: ApiDocument | undefined) => operationsOf(document).map(({ operationId = "" }) => operationId);

test("every operation of every service has a tag, a title and named bodies, and one name is one thing", () => {
  expect(Object.keys(documents)).toHaveLength(7);
  expect(apiFaults(documents)).toEqual([]);

  // The service describes what the gateway passes on unchanged, under the same operationId.
  const ids = Object.entries(documents).flatMap(([name, document]) => (name === "gateway-bff" ? [] : idsOf(document)));
  const passedOn = operationsOf(documents["gateway-bff"]).filter(({ responses }) =>
    JSON.stringify(responses).includes("#/components/schemas/ServiceResponse"),
  );
  expect(passedOn.length).toBeGreaterThan(10);
  for (const { operationId } of passedOn) expect(ids).toContain(operationId);
});

test("the gateway has one document with every operation of all services, each under an id of its own", () => {
  expect(apiFaults({ merged })).toEqual([]);
  const ids = idsOf(merged);
  expect(new Set(ids).size).toBe(ids.length);
  // Parts of a response that the gateway puts together have its path at each service, under an id of their own.
  const parts = [
    ...["explainIdHere", "getServiceOverview", "listDeadLetterGroups", "listServiceKeys", "listStaffActs"],
    ...["createServiceKey", "revokeServiceKey"],
  ];
  expect(new Set(Object.values(documents).flatMap(idsOf))).toEqual(new Set([...ids, ...parts]));
  // The gateway's document describes it as the service's does.
  expect(JSON.stringify(merged.paths["/v1/points/users/{user_id}/balance"])).not.toContain("ServiceResponse");
  expect(merged.paths["/v1/points/users/{user_id}/balance"]?.get).toMatchObject({
    servers: [{ url: "/" }, { url: expect.stringMatching(/^http:/) }],
    security: [{ cookie: [] }, { session: [] }, { apiKey: ["read"] }],
  });
  for (const operation of operationsOf(merged)) {
    const [sample] = operation["x-codeSamples"] ?? [];
    expect(sample).toMatchObject({ label: "curl", source: expect.stringMatching(/^curl /) });
  }
});

type Operation = ReturnType<typeof operationsOf>[number];

/** The samples with the client, without the player's login. */
const clientSamplesOf = ({ operationId = "", "x-codeSamples": samples = [] }: Operation) =>
  samples
    .filter(({ label }) => label.startsWith("Client"))
    .map(({ label, source }, index) => ({ name: `${operationId}_${index}`, label, source }));

test("the client has a sample for each of its methods, and all samples compile", { timeout: 60_000 }, async () => {
  const samples = operationsOf(merged).flatMap(clientSamplesOf);
  const shown = (label: string) =>
    samples
      .filter((sample) => sample.label === label)
      .map(({ source }) => /todoke\.(\w+\.\w+)\(|(logIn)\(/.exec(source))
      .map((found) => found?.[1] ?? "gateway.fetchSessionToken");
  const ofPlayers = Object.entries(gatewayOperations).flatMap(([name, lines]) =>
    Object.keys(lines).map((method) => `${name}.${method}`),
  );
  expect(shown("Client (player)").toSorted()).toEqual(ofPlayers.toSorted());
  expect(shown("Client (back-end)").toSorted()).toEqual(methodsForKeys().toSorted());
  using project = createProject();
  expect(await project.compile(samples)).toBe("");
});

/** The methods of services that an API key may call. */
const methodsForKeys = (): string[] =>
  Object.entries(serviceOperations).flatMap(([service, lines]) =>
    Object.entries(lines).flatMap(([name, line]) => {
      const [method = "", path = ""] = line.split(" ");
      const security = documents[service]?.paths[path]?.[method.toLowerCase()]?.security ?? [];
      const namespace = namespaces[service as keyof typeof namespaces];
      return security.some((each) => "apiKey" in each) ? [`${namespace}.${name}`] : [];
    }),
  );

/** Commands that succeed once more after all examples. */
const repeatable = ["grantEntitlement", "changeEntitlements", "addPointsV1", "spendPointsV1", "placeHold"].concat(
  ["reservePointsV1", "reservePointsBatch", "joinQueueForUser", "cancelAllOrders", "suspendUser", "reinstateUser"],
  ["grantEntitlementAsStaff", "adjustPoints"],
);
/** What only the player may read; and orders of an admin, which an API key cannot see. */
const ofPlayer = ["getTicket", "getProfile"];
const ofAdmin = ["getOrder", "getOrderByKey", "listOrderFills", "listOrderHistory"];

test("samples of reads and of many commands run as they are shown", { timeout: 60_000 }, async () => {
  const admin = await all.openSession(await all.createUser("admin"));
  const { user_id: userId = "" } = sent.get("getProfile")?.request.path ?? {};
  const player = await all.openSession({ userId, roles: ["USER"], version: 1 });
  const reads = Object.values(merged.paths).flatMap(({ get }) => (get ? [get] : []));
  const programs = [
    ...reads,
    ...operationsOf(merged).filter(({ operationId = "" }) => repeatable.includes(operationId)),
  ]
    .filter(({ operationId = "" }) => sent.has(operationId))
    .flatMap((operation): RunnableProgram[] => {
      const { operationId = "", security = [] } = operation;
      const [scope = ""] = security.flatMap(({ apiKey }) => (apiKey as string[] | undefined) ?? []);
      const session = ofPlayer.includes(operationId) ? player : admin;
      const env = { TODOKE_SESSION: session, TODOKE_API_KEY: apiKeyFor(scope) };
      return clientSamplesOf(operation)
        .filter(({ label }) => label === "Client (player)" || !ofAdmin.includes(operationId))
        .map(({ name, source }) => ({ name, source: withValuesOfNow(operationId, source), env }));
    });
  expect(programs.length).toBeGreaterThan(70);
  using project = createProject();
  expect(await project.runAll(programs)).toEqual([]);
});

/** The recorded ids are those of another database. */
function withValuesOfNow(operationId: string, source: string): string {
  const [recorded, now] = [exampleOf(operationId)?.request, sent.get(operationId)?.request];
  return stringPairs(recorded, now).reduce(
    (text, [from, to]) => text.replaceAll(JSON.stringify(from), JSON.stringify(to)),
    source,
  );
}

/** The strings that differ, at the same place of two values. */
function stringPairs(from: unknown, to: unknown): (readonly [from: string, to: string])[] {
  if (typeof from === "string" && typeof to === "string") return from === to ? [] : [[from, to]];
  if (typeof from !== "object" || from === null || typeof to !== "object" || to === null) return [];
  return Object.entries(from).flatMap(([key, each]) => stringPairs(each, (to as Record<string, unknown>)[key]));
}

test("every operation has an example, and a service returns what the example shows", () => {
  const ids = idsOf(merged).filter((id) => !withoutExample.has(id));
  expect(ids.filter((id) => !exampleOf(id))).toEqual([]);
  const faults = ids.flatMap((id) => {
    const [now, example] = [sent.get(id), exampleOf(id)];
    if (!now || !example) return [`${id} is not sent`];
    return now.status === example.status
      ? typeFaults(now.response, example.response, id)
      : [`${id} has status ${now.status}`];
  });
  expect(faults).toEqual([]);
});

test("examples, and what services return, match the schemas", () => {
  const validate = validator({ components: merged.components });
  const faults = operationsOf(merged).flatMap(({ operationId = "", requestBody, responses = {} }) =>
    [exampleOf(operationId), sent.get(operationId)].flatMap((example) => {
      if (!example) return [];
      const bodySchema = requestBody?.content["application/json"]?.schema;
      const response = responses[example.status ?? 0]?.content ?? {};
      const [schema] = Object.values(response).map((media) => media.schema);
      return [
        ...(example.request.body === undefined ? [] : validate(bodySchema, example.request.body)),
        ...(example.response === undefined ? [] : validate(schema, example.response)),
      ].map((fault) => `${operationId}: ${fault}`);
    }),
  );
  expect(faults).toEqual([]);
  expect(validate({ $ref: "#/components/schemas/Entitlement" }, { status: "ACTIVE" })).not.toEqual([]);
});

/** Problems that say that a request reached no operation. */
const ofNoOperation = new Set([
  "bad-request",
  "debug-closed",
  "headers-too-large",
  "internal",
  "malformed-http",
  "malformed-url",
  "method-not-allowed",
  "not-found",
  "request-timeout",
  "too-many-in-flight",
  "unknown-host",
]);

test("every problem of the catalogues is named by an operation that can return it", () => {
  const root = new URL("..", import.meta.url).pathname;
  const sources = globSync(["{services,packages}/*/problems.ts", "packages/kernel/{batcher,idempotency}/*.ts"], {
    cwd: root,
  });
  const codes = sources.flatMap((path) => problemsIn(readFileSync(root + path, "utf8")).map(({ code = "" }) => code));
  const text = JSON.stringify(merged.components.schemas);
  const missing = codes.filter((code) => !ofNoOperation.has(code) && !text.includes(`{"const":"${code}"}`));
  expect(codes.length).toBeGreaterThan(80);
  expect(missing).toEqual([]);
});

test("published events have the payloads, headers and aggregate keys of the AsyncAPI document", () => {
  const document = JSON.parse(asyncApiText());
  const validate = validator({ components: document.components });
  const faults = published.flatMap(({ eventType, payload, subject, aggregateKey, occurredAt, headers }) => {
    const type = eventType as EventType;
    const fields = formatEvent(type, decodeEvent(type, payload)) as Readonly<Record<string, unknown>>;
    const message = document.components.messages[type];
    const [channel] = Object.values<{ address: string; messages: object }>(document.channels).filter(
      ({ messages }) => type in messages,
    );
    return [
      ...validate(message.payload, fields),
      ...validate(
        { $ref: "#/components/schemas/EventHeaders" },
        { event_type: type, aggregate_key: aggregateKey, occurred_at: occurredAt, ...headers },
      ),
      ...(channel?.address === subject ? [] : [`is published on ${subject}`]),
      ...(aggregateKeyOf(type, fields) === aggregateKey ? [] : [`has the aggregate key ${aggregateKey}`]),
    ].map((fault) => `${type} ${fault}`);
  });
  expect(new Set(published.map(({ eventType }) => eventType)).size).toBeGreaterThan(10);
  expect(faults).toEqual([]);
});

/** Returns the faults of a value. No object may have a property that its schema does not name. */
function validator(root: object) {
  const ajv = addFormats.default(new Ajv2020({ strict: false, allErrors: false }));
  ajv.addSchema(closed(root) as object, "root");
  return (schema: object | undefined, value: unknown): string[] => {
    const text = JSON.stringify(closed(schema ?? false)).replaceAll('"#/', '"root#/');
    const check = ajv.compile(JSON.parse(text));
    return check(value) ? [] : (check.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  };
}

function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== "object" || value === null) return value;
  const copy = Object.fromEntries(Object.entries(value).map(([key, each]) => [key, closed(each)]));
  const isObject = "properties" in copy && copy.type === "object" && !("allOf" in copy);
  return isObject && !("additionalProperties" in copy) ? { ...copy, additionalProperties: false } : copy;
}

/** Where two JSON values have different types. A property that only one of them has is optional: its schema says so. */
function typeFaults(now: unknown, example: unknown, path: string): string[] {
  const kind = (value: unknown) => (Array.isArray(value) ? "array" : typeof value);
  if (now === null || example === null) return [];
  if (kind(now) !== kind(example)) return [`${path} is ${kind(now)}, in the example ${kind(example)}`];
  if (Array.isArray(now))
    return now.length > 0 && (example as unknown[]).length > 0
      ? typeFaults(now[0], (example as unknown[])[0], `${path}[0]`)
      : [];
  if (typeof now !== "object" || now === null) return [];
  return Object.entries(now).flatMap(([key, value]) =>
    Object.hasOwn(example as object, key)
      ? typeFaults(value, (example as Record<string, unknown>)[key], `${path}.${key}`)
      : [],
  );
}

/** The operation whose response each part of a profile has. */
const partOperations = {
  account: ["account", "getUser"],
  entitlements: ["entitlement", "listEntitlements"],
  points: ["points", "getBalance"],
  expiring: ["points", "listExpiring"],
  matchmaking: ["matchmaking", "getTicket"],
  queues: ["matchmaking", "listQueues"],
  inbox: ["gateway-bff", "listInbox"],
} as const;

test("the fields that a client may pick of a profile are those of the services' responses", async () => {
  const token = await all.openSession(await all.createUser("player"));
  for (const [part, [service, operationId]] of Object.entries(partOperations)) {
    const { components } = documents[service] as ApiDocument;
    const operation = operationsOf(documents[service]).find((each) => each.operationId === operationId);
    const ref = String(operation?.responses?.[200]?.content?.["application/json"]?.schema?.$ref);
    const { properties = {} } = components.schemas?.[ref.split("/").at(-1) ?? ""] ?? {};
    const refused = await fetch(`${all.gateways[0]}/v1/me/profile?fields=${part}.nothing`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const { errors } = (await refused.json()) as { errors: { detail: string }[] };
    const named = errors[0]?.detail.split("there are ")[1]?.split(", ") ?? [];
    expect([part, named.sort()]).toEqual([part, Object.keys(properties as object).sort()]);
  }
});

/** A document without a fault, to put one in. */
function good() {
  const ref = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` });
  const bodyOf = (name: string) => ({ content: { "application/json": { schema: ref("schemas", name) } } });
  const get = {
    operationId: "getThing",
    summary: "Get a thing",
    description: "Returns a thing.",
    tags: ["Things"],
    security: [{ apiKey: [] }],
    parameters: [{ name: "thing_id", in: "path", required: true, schema: { type: "string" } }],
    responses: { 200: { description: "The thing.", ...bodyOf("Thing") }, default: ref("responses", "Problem") },
  };
  const count = { type: "integer", format: "int64" };
  return {
    openapi: "3.1.0",
    info: { title: "Things", version: "1" },
    tags: [{ name: "Things", description: "Things that there are." }],
    paths: { "/things/{thing_id}": { get } },
    components: {
      schemas: { Thing: { type: "object", properties: { count } }, Problem: { type: "object" } },
      responses: { Problem: { description: "It failed.", ...bodyOf("Problem") } },
      securitySchemes: { apiKey: { type: "http", scheme: "bearer" } },
    },
  };
}

type Good = ReturnType<typeof good>;
const get = (document: Good) => document.paths["/things/{thing_id}"].get;

/** Each is put into a document, and found. */
const faults: readonly (readonly [fault: string, put: (document: Good) => unknown])[] = [
  ["GET /things/{thing_id} does not have one tag of the document", (its) => Object.assign(get(its), { tags: [] })],
  ["GET /things/{thing_id} does not have one tag of the document", (its) => get(its).tags.push("Things")],
  ["the tag Things is not described", (its) => Object.assign(its.tags[0] ?? {}, { description: "" })],
  ["no operation has the tag Rest", (its) => its.tags.push({ name: "Rest", description: "The rest." })],
  [
    "GET /things/{thing_id} has a body of application/json that is no named component",
    (its) => Object.assign(get(its).responses[200].content["application/json"], { schema: { type: "object" } }),
  ],
  [
    "GET /things/{thing_id} has an error response that is no named component: 404",
    (its) => Object.assign(get(its).responses, { 404: { description: "It is not there." } }),
  ],
  [
    "GET /things/{thing_id} has a body of application/problem+json that is no named component",
    (its) => {
      const schema = { oneOf: [{ type: "object" }] };
      const content = { "application/problem+json": { schema } };
      Object.assign(get(its).responses, { 404: { description: "It is not there.", content } });
    },
  ],
  ["GET /things/{thing_id} does not describe its success", (its) => Reflect.deleteProperty(get(its).responses, "200")],
  ["#/components/schemas/Problem names nothing", (its) => Reflect.deleteProperty(its.components.schemas, "Problem")],
  ["#/components/schemas/Rest is not used", (its) => Object.assign(its.components.schemas, { Rest: {} })],
  [
    "GET /things/{thing_id} has no short title as its summary: Get a thing.",
    (its) => Object.assign(get(its), { summary: "Get a thing." }),
  ],
  [
    "GET /things/{thing_id} is not described in sentences: a thing",
    (its) => Object.assign(get(its), { description: "a thing" }),
  ],
  [
    "GET /things/{thing_id} uses a security scheme that the document does not have: token",
    (its) => Object.assign(get(its), { security: [{ token: [] }] }),
  ],
  ["GET /things/{thing_id} does not declare the parameters of its path", (its) => get(its).parameters.pop()],
  [
    "GET /things/{thing_id} does not require thing_id",
    (its) => Object.assign(get(its).parameters[0] ?? {}, { required: false }),
  ],
  ["it is not OpenAPI 3.1 with an info object", (its) => Object.assign(its, { openapi: "3.0.3" })],
  [
    "two operations have the operationId getThing",
    (its) => Object.assign(its.paths["/things/{thing_id}"], { put: get(its) }),
  ],
];

test.each(faults)("it is found: %s", (fault, put) => {
  const document = good();
  expect(apiFaults({ things: document as unknown as ApiDocument })).toEqual([]);
  put(document);
  expect(apiFaults({ things: document as unknown as ApiDocument })).toContain(`things: ${fault}`);
});

test("a component that differs between two services is found, and an integer that is an int64 in one of them", () => {
  const [one, other] = [good(), good()];
  Object.assign(other.components.schemas.Thing.properties.count, { format: undefined });
  const documents = { one, other } as unknown as Record<string, ApiDocument>;
  expect(apiFaults(documents)).toEqual([
    "Thing of other differs from that of one (schemas)",
    "count is an int64 in one place and another integer elsewhere",
  ]);
});
