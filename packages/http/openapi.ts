/**
 * /openapi.json (OpenAPI 3.1), generated from the schemas that the routes enforce, so that the two cannot differ. Every
 * operation has a unique id and describes its error response.
 */
import swagger from "@fastify/swagger";
import type { FastifySchema, RouteOptions } from "fastify";
import { Type } from "typebox";
import type { HttpApp } from "./app.ts";
import { everybody, type Rule } from "./callers.ts";

/** An `application/problem+json` response (RFC 9457). */
export const ProblemView = Type.Object(
  {
    type: Type.String({ description: "A stable URI of the kind of problem." }),
    title: Type.String({ description: "A short description of the kind of problem." }),
    status: Type.Integer(),
    code: Type.String({
      description: "A stable short name of the kind of problem, for use in programs.",
      examples: ["invalid-request"],
    }),
    detail: Type.String({ description: "What is wrong with this request." }),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          field: Type.String({ examples: ["body.user_id"] }),
          detail: Type.String({ examples: ["must be a UUID"] }),
        }),
      ),
    ),
    instance: Type.String({ description: "The id of the request, as in the x-request-id header." }),
  },
  { description: "The request was rejected or failed." },
);

interface DocumentInfo {
  readonly title: string;
  readonly version: string;
  /** How users authenticate: by a session, or by a token that the gateway signs for them. */
  readonly userAuth?: "session" | "token";
  /** Whether the document is served; true by default. */
  readonly openapi?: boolean;
}

export async function describeRoutes(app: HttpApp, info: DocumentInfo): Promise<void> {
  const schemes = securitySchemes[info.userAuth ?? "token"];
  requireOperationIds(app);
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: { title: info.title, version: info.version },
      components: { schemas: { Problem: ProblemView }, securitySchemes: { apiKey, ...schemes } },
    },
    convertConstToEnum: false, // OpenAPI 3.1 is JSON Schema and has const.
    transform: ({ schema, url, route }) => ({
      schema: withSecurity(withProblems(schema), route, Object.keys(schemes)),
      url,
    }),
  });
  if (info.openapi === false) return;
  let document: string | undefined;
  app.get("/openapi.json", { ...everybody, schema: { hide: true } }, (_request, reply) => {
    document ??= JSON.stringify(app.swagger());
    return reply.type("application/json; charset=utf-8").send(document);
  });
}

const bearer = (description: string) => ({ type: "http", scheme: "bearer", description }) as const;
const apiKey = bearer("An API key: `Authorization: Bearer tdk_…`");
const securitySchemes = {
  token: { token: bearer("A token that the gateway signs for a user or for itself, valid for one minute") },
  session: {
    cookie: {
      type: "apiKey",
      in: "cookie",
      name: "__Host-todoke",
      description: "The session of a browser. Every request except GET also needs the header `X-Todoke-Request`",
    },
    session: bearer("The session of a native client: `Authorization: Bearer tds_…`"),
  },
} as const;

/** The access rule comes from `requires`. */
function withSecurity(schema: FastifySchema, { config }: RouteOptions, schemes: readonly string[]): FastifySchema {
  const rule = config?.rule;
  if (!rule || rule.everybody) return schema;
  const byScheme = usesToken(rule) ? schemes.map((name) => ({ [name]: [] })) : [];
  const security = [...(rule.key ? [{ apiKey: [] }] : []), ...byScheme];
  const description = [schema.description, `Allowed for ${describeRule(rule)}.`].filter(Boolean).join(" ");
  return { ...schema, security, description };
}

const usesToken = ({ user, admin, service }: Rule): boolean => Boolean(user || admin || service);

function describeRule({ key, user, admin, service }: Rule): string {
  return [
    ...(key ? [`API keys with the scope \`${key}\``] : []),
    ...(user === "any" ? ["users"] : []),
    ...(user === "own" ? ["the user in the path"] : []),
    ...(admin ? ["admins"] : []),
    ...(service ?? []),
  ].join(", ");
}

/** Clients are generated from the ids, so every operation needs a unique one. */
function requireOperationIds(app: HttpApp): void {
  const known = new Map<string, string>();
  app.addHook("onRoute", ({ method, url, schema }: RouteOptions) => {
    if (schema?.hide || method === "HEAD") return;
    const route = `${[method].flat().join(" ")} ${url}`;
    const id = schema?.operationId;
    if (!id) throw new Error(`${route} has no operationId: give its schema one, or hide: true`);
    const other = known.get(id);
    if (other) throw new Error(`${route} has the operationId of ${other}: ${id}`);
    known.set(id, route);
  });
}

const problemResponse = {
  description: "The request was rejected or failed.",
  content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
};

/** Every operation can return a Problem; problems that a route lists itself are shown as such. */
function withProblems(schema: FastifySchema): FastifySchema {
  const named = Object.entries((schema?.response ?? {}) as Record<string, unknown>);
  const response = Object.fromEntries(
    named.map(([status, view]) => [status, view === ProblemView ? problemResponse : view]),
  );
  return { ...schema, response: { default: problemResponse, ...response } };
}
