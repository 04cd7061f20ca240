/** The API keys that a service accepts, for admins. They are created and revoked by `todoke keys`, as the owner of the table. */
import { named, oneOf, orNull } from "@todoke/contracts/api";
import { guarded, listKeys } from "@todoke/http";
import type { Queryable } from "@todoke/kernel/db";
import { Type } from "typebox";
import type { StaffRouteDeps } from "./deps.ts";

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

export function keyRoutes({ app, prefix, authenticate, reads, hide }: StaffRouteDeps): void {
  app.get(
    `${prefix}/keys`,
    guarded(
      authenticate,
      { staff: "ADMIN" },
      {
        hide,
        passesOnRefusals: hide,
        operationId: "listServiceKeys",
        summary: "List API keys of the service",
        tags: ["Operations"],
        description:
          "Returns the API keys in the table of the service, newest first. The keys themselves are not stored.",
        querystring: KeysQuery,
        response: { 200: named("ServiceKeys", { keys: Type.Array(named("ServiceKey", keyFields)) }) },
      },
    ),
    async ({ query }) => ({ keys: (await readKeys(reads, query)).map((key) => ({ ...key, scopes: [...key.scopes] })) }),
  );
}
