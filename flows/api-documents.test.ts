/** The API documents of all services, as clients and the reference page get them. */
import { expect, test } from "vitest";
import { startAll } from "./all-services.ts";
import { type ApiDocument, apiFaults } from "./api-faults.ts";

test("every operation of every service has a tag, a title and named bodies, and one name is one thing", async () => {
  // In development the operators' routes are in the documents too.
  await using all = await startAll({ settings: { TODOKE_DEV: "true" } });
  const read = async (url: string) => (await fetch(`${url}/openapi.json`)).json() as Promise<ApiDocument>;
  const documents = Object.fromEntries(
    await Promise.all(all.running.map(async ({ name, url }) => [name, await read(url)] as const)),
  );
  expect(Object.keys(documents)).toHaveLength(7);
  expect(apiFaults(documents)).toEqual([]);

  // What the gateway passes on unchanged is described by the service, under the same operationId.
  const operations = (name: string) =>
    Object.values(documents[name]?.paths ?? {}).flatMap((item) => Object.values(item));
  const ids = all.running.filter(({ name }) => name !== "gateway-bff").flatMap(({ name }) => operations(name));
  const passedOn = operations("gateway-bff").filter(({ responses }) =>
    JSON.stringify(responses).includes("#/components/schemas/ServiceResponse"),
  );
  expect(passedOn.length).toBeGreaterThan(10);
  for (const { operationId } of passedOn) expect(ids.map((each) => each.operationId)).toContain(operationId);
});

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
  await using all = await startAll();
  const token = await all.openSession(await all.createUser("player"));
  for (const [part, [service, operationId]] of Object.entries(partOperations)) {
    const { url = "" } = all.running.find(({ name }) => name === service) ?? {};
    const { paths, components } = (await (await fetch(`${url}/openapi.json`)).json()) as ApiDocument;
    const operation = Object.values(paths)
      .flatMap((item) => Object.values(item))
      .find((each) => each.operationId === operationId);
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
    (its) => Object.assign(get(its).responses, { 404: { ...its.components.responses.Problem } }),
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
