/** packages/client/gen is what the running services describe. */
import { readFileSync } from "node:fs";
import * as client from "@todoke/client";
import { expect, test } from "vitest";
import { readDocuments } from "./client/documents.ts";
import { emitClient } from "./client/emit.ts";
import type { ApiDocument, ApiDocuments, Parameter, Schema } from "./client/openapi.ts";
import { readProblemCodes } from "./client/problem-codes.ts";

const committed = (name: string) => readFileSync(new URL(`../packages/client/gen/${name}`, import.meta.url), "utf8");

test("the generated files are those of the services' documents and problems: else run `npm run client`", async () => {
  const files = emitClient(await readDocuments(), readProblemCodes());
  expect(Object.keys(files)).toEqual(["schemas.ts", "operations.ts", "problem-codes.ts"]);
  for (const [name, text] of Object.entries(files)) expect(text, name).toBe(committed(name));
});

test("the client has a method for every line of the tables", () => {
  const todoke = client.createClient({ services: { points: "http://p" }, apiKey: "tdk_1" });
  expect(Object.keys(todoke)).toEqual(["points"]);
  expect(todoke.points.spend).toBeTypeOf("function");
  const player = client.createClient({ gateway: "http://g", session: "tds_1" });
  expect(Object.keys(player)).toEqual(expect.arrayContaining(["gateway", "inbox", "matchmaking", "points"]));
});

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const content = (schema: Schema) => ({ content: { "application/json": { schema } } });
const userId = { name: "user_id", in: "path", required: true, schema: { type: "string" } } as const;

/** As much of a document as the tests change. */
interface Changeable {
  readonly paths: Record<string, Record<string, unknown>>;
  readonly schemas: Record<"ThingPage" | "Thing" | "ThingRequest", Schema & { properties: Record<string, Schema> }>;
  readonly parameters: Parameter[];
}

/** The documents of one service, small enough to be changed in a test. */
function small(change: (its: Changeable) => unknown = () => {}): ApiDocuments {
  const its: Changeable = {
    parameters: [userId],
    paths: {},
    schemas: {
      ThingPage: {
        type: "object",
        required: ["things"],
        properties: { things: { type: "array", items: ref("Thing") }, next_cursor: { type: "string" } },
      },
      Thing: {
        type: "object",
        required: ["count"],
        properties: { count: { type: "integer", format: "int64" } },
      },
      ThingRequest: { type: "object", properties: { count: { type: ["integer", "string"], format: "int64" } } },
    },
  };
  const { parameters, paths, schemas } = its;
  const responses = { 200: content(ref("ThingPage")) };
  paths["/v1/things/{user_id}"] = { get: { operationId: "listThings", parameters, responses } };
  change(its);
  return { points: { paths: paths as ApiDocument["paths"], components: { schemas } } };
}

const emitted = (change?: (its: Changeable) => unknown, codes = ["not-found"]): string =>
  Object.values(emitClient(small(change), codes)).join("\n");

test("a page, its items and an int64 have their types", () => {
  const text = emitted();
  expect(text).toContain(
    "listThings(params: {\n    readonly user_id: string;\n  }, options?: CallOptions): PagedCall<ThingPage, Thing>;",
  );
  expect(text).toContain("readonly count: bigint;");
  expect(text).toContain('listThings: "GET /v1/things/{user_id} items=things"');
  expect(text).toContain('int64Names = ["count"]');
});

test.each<[what: string, expected: string, change: (its: Changeable) => unknown]>([
  [
    "a route",
    'addThing: "POST /v1/things body key"',
    ({ paths }) => {
      const key = { name: "Idempotency-Key", in: "header", required: true, schema: { type: "string" } };
      const requestBody = content(ref("ThingRequest"));
      const post = {
        operationId: "addThing",
        parameters: [key],
        requestBody,
        responses: { 201: content(ref("Thing")) },
      };
      paths["/v1/things"] = { post };
    },
  ],
  [
    "a field",
    "readonly colour?: string;",
    ({ schemas }) => Object.assign(schemas.Thing.properties, { colour: { type: "string" } }),
  ],
  [
    "a parameter",
    "readonly status?: string;",
    ({ parameters }) => parameters.push({ name: "status", in: "query", schema: { type: "string" } }),
  ],
])("%s that is added is in the generated files", (_what, expected, change) => {
  expect(emitted()).not.toContain(expected);
  expect(emitted(change)).toContain(expected);
});

test("a problem that is added is in the union of codes", () => {
  expect(emitted()).not.toContain('| "thing-broken"');
  expect(emitted(undefined, ["not-found", "thing-broken"])).toContain('| "thing-broken"');
});

test.each<[fault: string, change: (its: Changeable) => unknown]>([
  ["allOf has no type here", ({ schemas }) => Object.assign(schemas.Thing.properties, { x: { allOf: [{}] } })],
  [
    "does not accept an int64 as a string of digits",
    ({ paths }) => {
      paths["/t"] = { post: { operationId: "t", requestBody: content(ref("Thing")), responses: { 200: {} } } };
    },
  ],
  [
    "has user_id beside its body",
    ({ paths, schemas }) => {
      schemas.ThingRequest.properties.user_id = { type: "string" };
      const requestBody = content(ref("ThingRequest"));
      paths["/t/{user_id}"] = { post: { operationId: "t", parameters: [userId], requestBody, responses: { 200: {} } } };
    },
  ],
])("what the client could not do right is an error: %s", (fault, change) => {
  expect(() => emitted(change)).toThrow(fault);
});
