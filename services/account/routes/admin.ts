/** Searches of admins: users, and the audit. */

import { named, UserView } from "@todoke/contracts/api";
import { guarded, type HttpApp, NextCursor, PageQuery, page, parseCursor, problems } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { type Static, Type } from "typebox";
import type { Deps } from "../deps.ts";
import { selectAudit } from "../store/audit.ts";
import { searchUsers, searchUsersByName, type UserSearch } from "../store/users.ts";
import { auditCursor } from "./request.ts";
import { AuditView, SearchQuery, UserId } from "./schemas.ts";

const UserPage = named("UserPage", { users: Type.Array(UserView), next_cursor: NextCursor });
const AuditPage = named("AuditPage", { audit: Type.Array(AuditView), next_cursor: NextCursor });

export function adminRoutes(app: HttpApp, deps: Deps): void {
  searchRoute(app, deps);
  auditRoute(app, deps);
}

function searchRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/admin/users",
    guarded(
      authenticate,
      { staff: "VIEWER" },
      {
        operationId: "searchUsers",
        summary: "Search users",
        tags: ["Account"],
        description:
          "Filters by id, by e-mail, by provider and subject, or by the beginning of the name. Without a filter it lists all users.",
        querystring: Type.Object({ ...SearchQuery, ...PageQuery }),
        response: { 200: UserPage },
      },
    ),
    async ({ query }) => {
      if (query.name !== undefined) return searchByName(db, { ...query, name: query.name });
      const { user_id, email } = query;
      const after = parseCursor(query, { parts: ["uuid"] })?.[0] ?? "";
      const filters = { ...(user_id && { user_id }), ...(email && { email }), ...parseIdentity(query), after };
      const { rows, ...next } = await page(query, {
        read: (limit) => searchUsers(db, { ...filters, limit }),
        name: (user) => user.user_id,
      });
      return { users: rows, ...next };
    },
  );
}

interface NameQuery extends Static<ReturnType<typeof Type.Object<typeof SearchQuery>>> {
  readonly name: string;
  readonly limit?: number;
  readonly cursor?: string;
}

async function searchByName(db: Db, query: NameQuery) {
  const { name: prefix, user_id, email, provider, subject } = query;
  if ([user_id, email, provider, subject].some((filter) => filter !== undefined))
    throw problems.invalidField("query.name", "cannot be combined with another filter");
  const [name, userId] = parseCursor(query, nameCursor) ?? [];
  const after = name === undefined || userId === undefined ? undefined : ([name, userId] as const);
  const { rows, ...next } = await page(query, {
    read: (limit) => searchUsersByName(db, { prefix, after, limit }),
    name: (row) => `${row.sort_name}\n${row.user_id}`,
  });
  return { users: rows.map(({ sort_name: _, ...user }) => user), ...next };
}

/** A display name is one line. */
const nameCursor = { parts: ["text", "uuid"], separator: "\n" } as const;

/** A subject identifies a user only together with its provider. */
function parseIdentity(query: { provider?: string; subject?: string }): Pick<UserSearch, "identity"> {
  const { provider, subject } = query;
  if (provider !== undefined && subject !== undefined) return { identity: { provider, subject } };
  if (provider === undefined && subject === undefined) return {};
  throw problems.invalidField(
    provider === undefined ? "query.provider" : "query.subject",
    "is missing: provider and subject go together",
  );
}

function auditRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/admin/audit",
    guarded(
      authenticate,
      { staff: "VIEWER" },
      {
        operationId: "listAudit",
        summary: "List the audit",
        tags: ["Account"],
        description: "Returns who changed which user, when and why; newest first.",
        querystring: Type.Object({
          user_id: Type.Optional(UserId),
          actor: Type.Optional(
            Type.String({ minLength: 1, maxLength: 160, description: "Who made the change.", examples: ["user:<id>"] }),
          ),
          only: Type.Optional(
            Type.Literal("acts", { description: "Only changes that have a reason: not creations and updates." }),
          ),
          ...PageQuery,
        }),
        response: { 200: AuditPage },
      },
    ),
    async ({ query }) => {
      const before = parseCursor(query, auditCursor)?.[0];
      const { rows, ...next } = await page(query, {
        read: (limit) =>
          selectAudit(db, {
            user_id: query.user_id,
            actor: query.actor,
            actsOnly: query.only === "acts",
            before,
            limit,
          }),
        name: (row) => String(row.audit_id),
      });
      return { audit: rows, ...next };
    },
  );
}
