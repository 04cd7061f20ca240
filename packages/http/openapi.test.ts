import { type TSchema, Type } from "typebox";
import { expect, test } from "vitest";
import { buildHttpApp } from "./app.ts";
import { requires } from "./callers.ts";
import { withDescription } from "./components.ts";
import { IdempotencyHeaders } from "./idempotency.ts";
import { ProblemView } from "./openapi.ts";

const refTo = (path: string, description?: string) => ({
  $ref: `#/components/${path}`,
  ...(description !== undefined && { description }),
});

const nobody = () => {
  throw new Error("nobody is asked here");
};

const setup = () => buildHttpApp({ title: "Points", version: "2.1.0", log: { level: "silent" } });

test("/openapi.json has the schemas that the routes enforce", async () => {
  await using app = await setup();
  const schema = {
    operationId: "addPoints",
    headers: IdempotencyHeaders,
    params: Type.Object({ user_id: Type.String({ format: "uuid" }) }),
    querystring: Type.Object({ limit: Type.Optional(Type.Integer({ maximum: 100 })) }),
    body: Type.Object({ amount: Type.Integer({ minimum: 1 }) }, { title: "AddPointsRequest" }),
    response: { 201: Type.Object({ balance: Type.String() }), 409: ProblemView },
  };
  app.post("/users/:user_id/points", { schema }, async (_request, reply) => reply.code(201).send({ balance: "1" }));

  const document = (await app.inject("/openapi.json")).json();

  expect(document).toMatchObject({ openapi: "3.1.0", info: { title: "Points", version: "2.1.0" } });
  expect(Object.keys(document.paths)).toEqual(["/users/{user_id}/points"]);
  const operation = document.paths["/users/{user_id}/points"].post;
  expect(operation.operationId).toBe("addPoints");
  const { schemas, parameters } = document.components;
  expect(operation.requestBody.content["application/json"].schema).toEqual(refTo("schemas/AddPointsRequest"));
  expect(schemas.AddPointsRequest).toMatchObject({ additionalProperties: false, required: ["amount"] });
  expect(operation.parameters).toMatchObject([
    { in: "query", name: "limit", schema: { maximum: 100 } },
    { in: "path", name: "user_id", required: true },
    refTo("parameters/IdempotencyKey"),
  ]);
  expect(parameters.IdempotencyKey).toMatchObject({ in: "header", name: "idempotency-key", required: true });
});

const problemNamed = (name: string) => ({
  content: { "application/problem+json": { schema: refTo(`schemas/${name}`) } },
});

test("every operation describes its error responses, which are components, and so is Problem", async () => {
  await using app = await setup();
  const schema = { operationId: "get", response: { 200: Type.Object({}), 404: ProblemView } };
  app.get("/things", { ...requires(nobody, { user: "any" }), schema }, async () => ({}));

  const { paths, components } = (await app.inject("/openapi.json")).json();

  expect(paths["/things"].get.responses).toMatchObject({
    400: problemNamed("InvalidRequestProblem"),
    401: problemNamed("UnauthenticatedProblem"),
    403: problemNamed("ForbiddenProblem"),
    404: refTo("responses/NotFound"),
    default: refTo("responses/Problem"),
  });
  const problem = { content: { "application/problem+json": { schema: refTo("schemas/Problem") } } };
  expect(components.responses).toMatchObject({ NotFound: problem, Problem: problem });
  expect(components.schemas.Problem.properties).toHaveProperty("errors");
});

test("a named schema is one component, and a place may describe it in its own words", async () => {
  await using app = await setup();
  const Status = Type.Union([Type.Literal("ON"), Type.Literal("OFF")], { title: "Status", description: "In general." });
  const Thing = Type.Object({ status: Status, next: withDescription(Status, "The next one.") }, { title: "Thing" });
  const Things = Type.Object({ things: Type.Array(Thing) }, { title: "Things" });
  const querystring = Type.Object({ status: Type.Optional(withDescription(Status, "Only these.")) });
  const response = { 200: Things };
  app.get("/things", { schema: { operationId: "list", querystring, response } }, async () => ({ things: [] }));

  const { paths, components } = (await app.inject("/openapi.json")).json();

  const { parameters, responses } = paths["/things"].get;
  expect(parameters).toMatchObject([{ name: "status", description: "Only these.", schema: refTo("schemas/Status") }]);
  expect(responses[200].content["application/json"].schema).toEqual(refTo("schemas/Things"));
  expect(components.schemas).toMatchObject({
    Status: { anyOf: [{ const: "ON" }, { const: "OFF" }], description: "In general." },
    Thing: { properties: { status: refTo("schemas/Status"), next: refTo("schemas/Status", "The next one.") } },
    Things: { properties: { things: { type: "array", items: refTo("schemas/Thing") } } },
  });
  expect(components.schemas.Thing.properties.status).toEqual(refTo("schemas/Status"));
});

test("two different schemas of one name are an error", async () => {
  await using app = await setup();
  const response = (View: TSchema) => ({ response: { 200: View } });
  const [text, number] = [Type.String({ title: "Same" }), Type.Number({ title: "Same" })];
  app.get("/a", { schema: { operationId: "a", ...response(text) } }, async () => "");
  app.get("/b", { schema: { operationId: "b", ...response(number) } }, async () => 1);
  await app.ready();
  expect(() => app.swagger()).toThrow("two different components are named Same");
});

test("the document describes the tags of its operations, in our order", async () => {
  await using app = await setup();
  for (const tag of ["Operations", "Of their own", "Points"])
    app.get(`/${tag.length}`, { schema: { operationId: `o${tag.length}`, tags: [tag] } }, async () => ({}));
  const { tags } = (await app.inject("/openapi.json")).json();
  expect(tags).toEqual([
    { name: "Points", description: expect.any(String) },
    { name: "Operations", description: expect.any(String) },
    { name: "Of their own" },
  ]);
});

test("a rejection matches the schema of Problem", async () => {
  await using app = await setup();
  const response = (await app.inject("/nothing")).json();
  expect(Object.keys(response).toSorted()).toEqual([...ProblemView.required].toSorted());
});

test("an app with a route without an operationId does not start", async () => {
  await using app = await setup();
  expect(() => app.get("/things", async () => ({}))).toThrow("GET /things has no operationId");
});

test("a route without an operationId deep in a plugin does not start either", async () => {
  await using app = await setup();
  app.register(async (scope) => {
    scope.get("/things", { schema: {} }, async () => ({}));
  });
  await expect(async () => app.ready()).rejects.toThrow("GET /things has no operationId");
});

test("an app with two routes of one operationId does not start", async () => {
  await using app = await setup();
  app.get("/a", { schema: { operationId: "same" } }, async () => ({}));
  expect(() => app.post("/b", { schema: { operationId: "same" } }, async () => ({}))).toThrow(
    "POST /b has the operationId of GET /a: same",
  );
});

test("the document says who may call a route", async () => {
  await using app = await setup();
  const options = { ...requires(nobody, { key: "points:write", user: "own" }), schema: { operationId: "open" } };
  app.get("/guarded", options, async () => ({}));
  app.get("/free", { schema: { operationId: "free" } }, async () => ({}));
  const { paths, components } = (await app.inject("/openapi.json")).json();
  expect(components.securitySchemes.apiKey).toMatchObject({ type: "http", scheme: "bearer" });
  expect(paths["/guarded"].get).toMatchObject({
    security: [{ apiKey: ["points:write"] }, { token: [] }],
    description: "Allowed for API keys with the scope `points:write` and the user in the path.",
  });
  expect(paths["/free"].get.security).toBeUndefined();
});

test("the document of an app with sessions names sessions", async () => {
  await using app = await buildHttpApp({ title: "t", version: "0", log: { level: "silent" }, userAuth: "session" });
  app.get("/me", { ...requires(nobody, { user: "any" }), schema: { operationId: "me" } }, async () => ({}));
  const { paths, components } = (await app.inject("/openapi.json")).json();
  expect(paths["/me"].get.security).toEqual([{ cookie: [] }, { session: [] }]);
  expect(components.securitySchemes.cookie).toMatchObject({ type: "apiKey", in: "cookie", name: "__Host-todoke" });
});
