/** One user: read, update, export. For the user and for admins. */

import { named, UpdateUserBody, UserView } from "@todoke/contracts/api";
import { guarded, type HttpApp, NextCursor, PageQuery, page, parseCursor, problems } from "@todoke/http";
import { Type } from "typebox";
import { canonicalLocale } from "../commands/update-user.ts";
import type { Deps } from "../deps.ts";
import { accountInactive, ifMatchMissing, userDeleted, userNotFound, versionMismatch } from "../problems.ts";
import { selectAudit } from "../store/audit.ts";
import type { ProfileChange } from "../store/change-users.ts";
import { selectExport } from "../store/export.ts";
import { auditCursor, formatEtag, ownOrAdmin, ownOrStaff, requireActorId } from "./request.ts";
import { ExportView, IfMatchHeaders, OneUser } from "./schemas.ts";

export function userRoutes(app: HttpApp, deps: Deps): void {
  getRoute(app, deps);
  updateRoute(app, deps);
  exportRoute(app, deps);
}

function getRoute(app: HttpApp, { authenticate, getUser }: Deps): void {
  app.get(
    "/users/:user_id",
    guarded(authenticate, ownOrStaff, {
      operationId: "getUser",
      summary: "Get a user",
      tags: ["Account"],
      description: "The ETag is the version, which an update names in If-Match.",
      params: OneUser,
      refusals: [userNotFound],
      responseHeaders: ["etag"],
      response: { 200: UserView },
    }),
    async ({ params: { user_id } }, reply) => {
      const user = await getUser(user_id);
      if (!user) throw userNotFound("no user has this id");
      reply.header("etag", formatEtag(user));
      return user;
    },
  );
}

function updateRoute(app: HttpApp, { authenticate, updateUser }: Deps): void {
  app.patch(
    "/users/:user_id",
    guarded(authenticate, ownOrAdmin, {
      operationId: "updateUser",
      summary: "Update a user",
      tags: ["Account"],
      description:
        "Changes the name, the locale or both. Of two updates of the same version, one succeeds and the other gets 412.",
      params: OneUser,
      headers: IfMatchHeaders,
      body: UpdateUserBody,
      refusals: [accountInactive, ifMatchMissing, userDeleted, userNotFound, versionMismatch],
      responseHeaders: ["etag"],
      response: { 200: UserView },
    }),
    async (request, reply) => {
      const user = await updateUser({
        actorId: requireActorId(request),
        userId: request.params.user_id,
        version: parseIfMatch(request.headers["if-match"]),
        profile: toProfileChange(request.body),
      });
      reply.header("etag", formatEtag(user));
      return user;
    },
  );
}

const etagPattern = /^"([1-9]\d{0,14})"$/;

/** Neither `*` nor a weak tag is accepted: the caller must have read the version that it changes. */
function parseIfMatch(header: string | undefined): number {
  const field = "header.if-match";
  if (header === undefined) {
    const fields = [{ field, detail: "is missing" }];
    throw ifMatchMissing("send If-Match with the ETag of the user as you last read it", { fields });
  }
  const version = etagPattern.exec(header)?.[1];
  if (version === undefined)
    throw problems.invalidField(field, 'must be the ETag of the user as you last read it, such as "3"');
  return Number(version);
}

function toProfileChange({ locale, ...rest }: ProfileChange): ProfileChange {
  if (typeof locale !== "string") return { ...rest, ...(locale === null && { locale }) };
  const canonical = canonicalLocale(locale);
  if (canonical === undefined) throw problems.invalidField("body.locale", "must be a language tag such as ja-JP");
  return { ...rest, locale: canonical };
}

const UserExport = named("UserExport", { ...ExportView, next_cursor: NextCursor });

function exportRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/users/:user_id/export",
    guarded(authenticate, ownOrAdmin, {
      operationId: "exportUser",
      summary: "Export a user",
      tags: ["Account"],
      description: "Returns all data of the user. The audit comes in pages; the other data is in every page.",
      params: OneUser,
      querystring: Type.Object(PageQuery),
      refusals: [userNotFound],
      response: { 200: UserExport },
    }),
    async ({ params: { user_id }, query }) => {
      const before = parseCursor(query, auditCursor)?.[0];
      const exported = await selectExport(db, user_id);
      if (!exported) throw userNotFound("no user has this id");
      const { rows, ...next } = await page(query, {
        read: (limit) => selectAudit(db, { user_id, before, limit }),
        name: (row) => String(row.audit_id),
      });
      return { ...exported, audit: rows, ...next };
    },
  );
}
