import { Type } from "typebox";
import { expect, test } from "vitest";
import { buildHttpApp } from "./app.ts";
import { requires } from "./callers.ts";
import { IdempotencyHeaders } from "./idempotency.ts";
import { ProblemView } from "./openapi.ts";

const setup = () => buildHttpApp({ title: "Points", version: "2.1.0", log: { level: "silent" } });

test("/openapi.json has the schemas that the routes enforce", async () => {
  await using app = await setup();
  const schema = {
    operationId: "addPoints",
    headers: IdempotencyHeaders,
    params: Type.Object({ user_id: Type.String({ format: "uuid" }) }),
    querystring: Type.Object({ limit: Type.Optional(Type.Integer({ maximum: 100 })) }),
    body: Type.Object({ amount: Type.Integer({ minimum: 1 }) }),
    response: { 201: Type.Object({ balance: Type.String() }), 409: ProblemView },
  };
  app.post("/users/:user_id/points", { schema }, async (_request, reply) => reply.code(201).send({ balance: "1" }));

  const document = (await app.inject("/openapi.json")).json();

  expect(document).toMatchObject({ openapi: "3.1.0", info: { title: "Points", version: "2.1.0" } });
  expect(Object.keys(document.paths)).toEqual(["/users/{user_id}/points"]);
  const operation = document.paths["/users/{user_id}/points"].post;
  expect(operation.operationId).toBe("addPoints");
  expect(operation.requestBody.content["application/json"].schema).toMatchObject({ additionalProperties: false });
  expect(operation.parameters).toMatchObject([
    { in: "query", name: "limit", schema: { maximum: 100 } },
    { in: "path", name: "user_id", required: true },
    { in: "header", name: "idempotency-key", required: true },
  ]);
});

test("every operation describes its error response, and Problem is one component", async () => {
  await using app = await setup();
  const schema = { operationId: "get", response: { 200: Type.Object({}), "4xx": ProblemView } };
  app.get("/things", { schema }, async () => ({}));

  const document = (await app.inject("/openapi.json")).json();

  const problem = { content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } } };
  expect(document.paths["/things"].get.responses).toMatchObject({ "4XX": problem, default: problem });
  expect(document.components.schemas.Problem.properties).toHaveProperty("errors");
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

const nobody = () => {
  throw new Error("nobody is asked here");
};

test("the document says who may call a route", async () => {
  await using app = await setup();
  const options = { ...requires(nobody, { key: "points:write", user: "own" }), schema: { operationId: "open" } };
  app.get("/guarded", options, async () => ({}));
  app.get("/free", { schema: { operationId: "free" } }, async () => ({}));
  const { paths, components } = (await app.inject("/openapi.json")).json();
  expect(components.securitySchemes.apiKey).toMatchObject({ type: "http", scheme: "bearer" });
  expect(paths["/guarded"].get).toMatchObject({
    security: [{ apiKey: [] }, { token: [] }],
    description: "Allowed for API keys with the scope `points:write`, the user in the path.",
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
