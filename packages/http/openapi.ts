/**
 * /openapi.json (OpenAPI 3.1), made of the schemas that the routes are held to, so that it cannot say anything else.
 * Every operation has an id of its own, and says how it refuses.
 */
import swagger from "@fastify/swagger";
import type { FastifySchema, RouteOptions } from "fastify";
import { Type } from "typebox";
import type { HttpApp } from "./app.ts";
import { everybody, type Rule } from "./callers.ts";

/** An `application/problem+json` answer (RFC 9457). */
export const ProblemView = Type.Object(
  {
    type: Type.String({ description: "Stable; names the kind of problem." }),
    title: Type.String({ description: "The kind of problem, in words." }),
    status: Type.Integer(),
    code: Type.String({ description: "Stable and short: branch on this.", examples: ["invalid-request"] }),
    detail: Type.String({ description: "What happened this time." }),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          field: Type.String({ examples: ["body.user_id"] }),
          detail: Type.String({ examples: ["must be a UUID"] }),
        }),
      ),
    ),
    instance: Type.String({ description: "The id of the request, as in the header x-request-id." }),
  },
  { description: "The request was refused, or failed." },
);

interface About {
  readonly title: string;
  readonly version: string;
  /** How users prove who they are here: by a session of their own, or by a token that the gateway signs for them. */
  readonly usersBy?: "session" | "token";
  /** Whether the document is served: yes, unless set to false. */
  readonly openapi?: boolean;
}

export async function describeRoutes(app: HttpApp, info: About): Promise<void> {
  const proofs = proofsOf[info.usersBy ?? "token"];
  requireOperationIds(app);
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: { title: info.title, version: info.version },
      components: { schemas: { Problem: ProblemView }, securitySchemes: { apiKey, ...proofs } },
    },
    convertConstToEnum: false, // 3.1 is JSON Schema: a constant may stay one.
    transform: ({ schema, url, route }) => ({
      schema: withSecurity(withProblems(schema), route, Object.keys(proofs)),
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
const proofsOf = {
  token: { token: bearer("What the gateway sends for a user or for itself: a signed token of a minute") },
  session: {
    cookie: {
      type: "apiKey",
      in: "cookie",
      name: "__Host-todoke",
      description: "A browser's session; with the header `X-Todoke-Request` on all that is not a GET",
    },
    session: bearer("A native client's session: `Authorization: Bearer tds_…`"),
  },
} as const;

/** Who may call is known from `requires`. */
function withSecurity(schema: FastifySchema, { config }: RouteOptions, proofs: readonly string[]): FastifySchema {
  const rule = config?.rule;
  if (!rule || rule.everybody) return schema;
  const byProof = byToken(rule) ? proofs.map((name) => ({ [name]: [] })) : [];
  const security = [...(rule.key ? [{ apiKey: [] }] : []), ...byProof];
  const description = [schema.description, `For ${whoMay(rule)}.`].filter(Boolean).join(" ");
  return { ...schema, security, description };
}

const byToken = ({ user, admin, service }: Rule): boolean => Boolean(user || admin || service);

function whoMay({ key, user, admin, service }: Rule): string {
  return [
    ...(key ? [`API keys with the scope \`${key}\``] : []),
    ...(user === "any" ? ["users"] : []),
    ...(user === "own" ? ["the user it is about"] : []),
    ...(admin ? ["admins"] : []),
    ...(service ?? []),
  ].join(", ");
}

/** Clients are generated from the ids; two alike, or none, would break them long after the route was written. */
function requireOperationIds(app: HttpApp): void {
  const known = new Map<string, string>();
  app.addHook("onRoute", ({ method, url, schema }: RouteOptions) => {
    if (schema?.hide || method === "HEAD") return;
    const place = `${[method].flat().join(" ")} ${url}`;
    const id = schema?.operationId;
    if (!id) throw new Error(`${place} has no operationId: give its schema one, or hide: true`);
    const other = known.get(id);
    if (other) throw new Error(`${place} has the operationId of ${other}: ${id}`);
    known.set(id, place);
  });
}

const problemAnswer = {
  description: "The request was refused, or failed.",
  content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
};

/** Every operation can refuse. Where a route names some of its refusals itself, they are shown as what they are. */
function withProblems(schema: FastifySchema): FastifySchema {
  const named = Object.entries((schema?.response ?? {}) as Record<string, unknown>);
  const response = Object.fromEntries(
    named.map(([status, view]) => [status, view === ProblemView ? problemAnswer : view]),
  );
  return { ...schema, response: { default: problemAnswer, ...response } };
}
