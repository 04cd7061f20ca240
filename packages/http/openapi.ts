/**
 * /openapi.json (OpenAPI 3.1), generated from the schemas that the routes enforce, so that the two cannot differ. Every
 * operation has a unique id and describes its error response.
 */

import swagger from "@fastify/swagger";
import { named } from "@todoke/contracts/api";
import type { FastifySchema, RouteOptions } from "fastify";
import { Type } from "typebox";
import type { HttpApp } from "./app.ts";
import { type AccessRule, publicRoute } from "./callers.ts";
import { Components } from "./components.ts";
import { type Document, nameParts } from "./openapi-document.ts";
import { keyIn, refusalsOf } from "./refusals.ts";

/** An `application/problem+json` response (RFC 9457). Its title is the name of the component, as for every schema. */
export const ProblemView = Type.Object(
  {
    type: Type.String({ description: "A stable URI of the kind of problem." }),
    title: Type.String({ description: "A short description of the kind of problem." }),
    status: Type.Integer({ description: "The HTTP status.", examples: [400] }),
    code: Type.String({
      description: "A stable short name of the kind of problem, for use in programs.",
      examples: ["invalid-request"],
    }),
    detail: Type.String({ description: "What is wrong with this request." }),
    errors: Type.Optional(
      Type.Array(
        named("FieldError", {
          field: Type.String({ description: "The field of the request.", examples: ["body.user_id"] }),
          detail: Type.String({ description: "What is wrong with it.", examples: ["must be a UUID"] }),
        }),
        { description: "The fields that were rejected, if there are some." },
      ),
    ),
    instance: Type.String({ description: "The id of the request, as in the x-request-id header." }),
  },
  { title: "Problem", description: "Why a request was rejected or failed (RFC 9457)." },
);

interface DocumentInfo {
  readonly title: string;
  readonly version: string;
  /** How users authenticate: by a session, or by a token that the gateway signs for them. */
  readonly userAuth?: "session" | "token";
  /** Whether the document is served; true by default. */
  readonly openapi?: boolean;
  /** Where the document is served; `/openapi.json` by default. */
  readonly openapiPath?: `/${string}`;
}

export async function describeRoutes(app: HttpApp, info: DocumentInfo): Promise<void> {
  const schemes = securitySchemes[info.userAuth ?? "token"];
  const components = new Components();
  components.collect(ProblemView);
  requireOperationIds(app);
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: { title: info.title, version: info.version },
      components: { securitySchemes: { apiKey, ...schemes } },
    },
    convertConstToEnum: false, // OpenAPI 3.1 is JSON Schema and has const.
    transform: ({ schema, url, route }) => {
      if (!schema?.hide) components.collect(schema);
      return { schema: withSecurity(withProblems(schema, route), route, Object.keys(schemes)), url };
    },
    transformObject: (document) =>
      "openapiObject" in document ? nameParts(document.openapiObject as Document, components) : document.swaggerObject,
  });
  if (info.openapi === false) return;
  let document: string | undefined;
  app.get(info.openapiPath ?? "/openapi.json", { ...publicRoute, schema: { hide: true } }, (_request, reply) => {
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
  if (!rule || rule.isPublic) return schema;
  const byScheme = usesToken(rule) ? schemes.map((name) => ({ [name]: [] })) : [];
  const security = [...(rule.key ? [{ apiKey: [rule.key] }] : []), ...byScheme];
  const description = [schema.description, `Allowed for ${describeRule(rule)}.`].filter(Boolean).join(" ");
  return { ...schema, security, description };
}

const usesToken = ({ user, staff, service }: AccessRule): boolean => Boolean(user || staff || service);

const staffNames = { VIEWER: "staff", OPERATOR: "operators and admins", ADMIN: "admins" } as const;

function describeRule({ key, user, staff, service }: AccessRule): string {
  const callers = [
    ...(key ? [`API keys with the scope \`${key}\``] : []),
    ...(user === "any" ? ["users"] : []),
    ...(user === "own" ? ["the user in the path"] : []),
    ...(staff ? [staffNames[staff]] : []),
    ...(service ?? []),
  ];
  return new Intl.ListFormat("en").format(callers);
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
  content: { "application/problem+json": { schema: ProblemView } },
};

/**
 * Every operation can return a Problem. `openapi-document.ts` replaces the responses by those of the operation's refusals: a
 * status of theirs need not be listed.
 */
function withProblems(schema: FastifySchema, route: RouteOptions): FastifySchema {
  if (schema?.hide) return schema;
  const { response = {}, responseHeaders = [] } = schema ?? {};
  const kinds = refusalsOf({ schema, config: route.config });
  const refused = kinds.map(({ status }) => [status, problemResponse]);
  const listed = Object.entries(response as Record<string, unknown>);
  const named = listed.map(([status, view]) => [status, view === ProblemView ? problemResponse : view]);
  const replayed = schema && keyIn(schema) ? ["idempotency-replayed"] : [];
  return {
    ...schema,
    response: { ...Object.fromEntries(refused), ...Object.fromEntries(named), default: problemResponse },
    ...{ "x-refusals": kinds, "x-response-headers": [...responseHeaders, ...replayed] },
    ...(schema?.passesOnRefusals && { "x-passes-on": true }),
  };
}
