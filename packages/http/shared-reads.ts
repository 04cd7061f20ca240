/**
 * Shared reads: the route for one user, for many users in one request. The gateway sends one when reads of several users wait for the
 * same service (docs/adr/0100).
 *
 * Each result is the body that the route for one user returns, as text: another parser on the way would round large numbers.
 */
import { type TSchema, Type } from "typebox";
import type { HttpApp } from "./app.ts";
import { type Authenticate, guarded } from "./callers.ts";

/** The most users of one request; a match has at most as many players. */
const usersMax = 64;

export const UserIds = Type.String({
  maxLength: usersMax * 129,
  pattern: `^[^,\\u0000]{1,128}(,[^,\\u0000]{1,128}){0,${usersMax - 1}}$`,
  description: `Up to ${usersMax} ids, with commas between.`,
  examples: ["01a1df39-ea33-7000-ba4d-967d2e0fabc4"],
});

/** The response of the route for one user. Null: only that route can answer, so the gateway calls it. */
export type SharedResult =
  | { readonly status: 200; readonly value: unknown; readonly etag?: string }
  | { readonly status: 204 }
  | null;

export interface SharedRead {
  readonly authenticate: Authenticate;
  /** In the path: /shared-reads/<name>. */
  readonly name: string;
  readonly operationId: string;
  readonly summary: string;
  readonly tag: string;
  /** The response of the route for one user. */
  readonly view: TSchema;
  /** Returns the results in input order. */
  readonly read: (userIds: readonly string[]) => Promise<readonly SharedResult[]>;
}

const SharedResults = Type.Object(
  {
    results: Type.Array(
      Type.Union([
        Type.Object(
          {
            status: Type.Integer({ description: "The status that the route for one user returns.", examples: [200] }),
            body: Type.String({ description: "Its body, unchanged; empty with 204." }),
            etag: Type.Optional(Type.String({ description: "Its ETag." })),
          },
          { title: "SharedResult" },
        ),
        Type.Null({ description: "Call the route for this user." }),
      ]),
      { description: "A result for each user, at the same index." },
    ),
  },
  { title: "SharedResults" },
);

export function shareReads(app: HttpApp, { authenticate, read, name, view, tag, ...texts }: SharedRead): void {
  app.get(
    `/shared-reads/${name}`,
    guarded(authenticate, { service: ["gateway-bff"] } as const, {
      ...texts,
      tags: [tag],
      description:
        "For the gateway, which has authenticated the users. Returns what the route for one user returns, for each of them.",
      querystring: Type.Object({ user_ids: UserIds }),
      response: { 200: SharedResults },
    }),
    async ({ query }, reply) => {
      const found = await read(query.user_ids.split(","));
      const serialize = reply.compileSerializationSchema(view as Record<string, unknown>);
      const results = found.map((result) => toResult(result, serialize));
      return reply.header("content-type", "application/json; charset=utf-8").send(JSON.stringify({ results }) as never);
    },
  );
}

function toResult(result: SharedResult, serialize: (value: never) => string) {
  if (result?.status !== 200) return result ? { status: 204, body: "" } : null;
  const { status, value, etag } = result;
  return { status, body: serialize(value as never), etag };
}
