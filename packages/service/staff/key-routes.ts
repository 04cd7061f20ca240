/** The API keys that a service accepts, for admins. `todoke keys` does the same on the databases. */
import { named, oneOf, orNull, ReasonBody, RequestTime } from "@todoke/contracts/api";
import {
  guarded,
  IdempotencyHeaders,
  idempotencyKey,
  listKeys,
  maxKeyRate,
  problems,
  scopes,
  sendResponse,
  staffActor,
} from "@todoke/http";
import type { Queryable } from "@todoke/kernel/db";
import { Type } from "typebox";
import { createServiceKey } from "./create-service-key.ts";
import type { StaffRouteDeps } from "./deps.ts";
import { revokeServiceKey } from "./revoke-service-key.ts";

const time = orNull(Type.String({ format: "date-time" }));

/** The fields of an API key, without the services that accept it. */
export const keyFields = {
  key_id: Type.String({ format: "uuid" }),
  holder: Type.String(),
  scopes: Type.Array(Type.String()),
  state: oneOf(["live", "expired", "revoked"]),
  created_at: Type.String({ format: "date-time" }),
  created_by: Type.String(),
  expires_at: time,
  revoked_at: time,
  revoked_by: orNull(Type.String()),
  revoked_reason: orNull(Type.String()),
  last_used_at: time,
};

export const KeysQuery = Type.Object({
  holder: Type.Optional(Type.String({ pattern: "^[a-z0-9_-]{1,63}$", description: "Only keys of this holder." })),
  state: Type.Optional(oneOf(["live", "any"], { description: "any: revoked and expired keys too. Default: live." })),
});

export interface KeysFilter {
  readonly holder?: string;
  readonly state?: "live" | "any";
}

// With more keys than this, filter by holder.
const keysMax = 1_000;

/** Newest first. */
export const readKeys = (reads: Queryable, { holder, state = "live" }: KeysFilter) =>
  listKeys(reads, { of: holder === undefined ? undefined : { holder }, all: state === "any", limit: keysMax });

/** Without the services that accept it. The caller makes the key, and sends its hash: no server ever has the key. */
export const newKeyFields = {
  key_id: Type.String({ format: "uuid", description: "A UUID of your own. The same ID and hash are the same key." }),
  sha256: Type.String({
    pattern: "^[0-9a-f]{64}$",
    description: "The SHA-256 of the key, in hex; never the key itself.",
  }),
  holder: Type.String({
    pattern: "^[a-z0-9][a-z0-9_-]{0,62}$",
    description: "The caller in every idempotency scope; it may have several keys.",
    examples: ["shop"],
  }),
  scopes: Type.Array(oneOf([...scopes]), { minItems: 1, maxItems: scopes.length, uniqueItems: true }),
  expires_at: orNull(RequestTime({ description: "Null: never.", examples: ["2999-01-31T09:30:00Z"] })),
  per_second: Type.Optional(
    Type.Integer({ minimum: 1, maximum: maxKeyRate, description: "Requests per second to each process of a service." }),
  ),
  reason: ReasonBody.properties.reason,
};

const admins = { staff: "ADMIN" } as const;
const tags = ["Operations"];
const NewKeyBody = named("NewServiceKey", newKeyFields);
export const KeyParams = Type.Object({ key_id: Type.String({ format: "uuid" }) });

export function keyRoutes(deps: StaffRouteDeps): void {
  const { app, prefix, authenticate, reads, hide } = deps;
  changeRoutes(deps);
  app.get(
    `${prefix}/keys`,
    guarded(authenticate, admins, {
      hide,
      passesOnRefusals: hide,
      operationId: "listServiceKeys",
      summary: "List API keys of the service",
      tags,
      description:
        "Returns the API keys in the table of the service, newest first. The keys themselves are not stored.",
      querystring: KeysQuery,
      response: { 200: named("ServiceKeys", { keys: Type.Array(named("ServiceKey", keyFields)) }) },
    }),
    async ({ query }) => ({ keys: (await readKeys(reads, query)).map((key) => ({ ...key, scopes: [...key.scopes] })) }),
  );
}

function changeRoutes(deps: StaffRouteDeps): void {
  const { app, prefix, authenticate, hide } = deps;
  const create = createServiceKey(deps);
  const revoke = revokeServiceKey(deps);
  app.post(
    `${prefix}/keys`,
    guarded(authenticate, admins, {
      hide,
      passesOnRefusals: hide,
      operationId: "createServiceKey",
      summary: "Create an API key of the service",
      tags,
      description: "Lets the service accept a key, of which it gets the hash.",
      headers: IdempotencyHeaders,
      body: NewKeyBody,
      refusals: [problems.apiKeyConflict],
      response: { 201: named("CreatedServiceKey", { key_id: keyFields.key_id }) },
    }),
    async (request, reply) => {
      const key = idempotencyKey(request, request.caller);
      return sendResponse(reply, await create({ key, actor: staffActor(request), newKey: request.body }));
    },
  );
  app.post(
    `${prefix}/keys/:key_id([^/:]+)::revoke`,
    guarded(authenticate, admins, {
      hide,
      passesOnRefusals: hide,
      operationId: "revokeServiceKey",
      summary: "Revoke an API key of the service",
      tags,
      description: "The service accepts the key no more. A key that it does not have, or has revoked, stays as it is.",
      params: KeyParams,
      headers: IdempotencyHeaders,
      body: ReasonBody,
      response: {
        200: named("RevokedServiceKey", {
          key_id: keyFields.key_id,
          revoked: Type.Boolean({ description: "False if there was nothing to revoke." }),
        }),
      },
    }),
    async (request, reply) => {
      const key = idempotencyKey(request, request.caller);
      const { key_id: keyId } = request.params;
      return sendResponse(reply, await revoke({ key, actor: staffActor(request), keyId, reason: request.body.reason }));
    },
  );
}
