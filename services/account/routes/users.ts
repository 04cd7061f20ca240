/** One user, for themself and for admins: read, change, export, delete. */
import {
  cursorOf,
  type HttpApp,
  IdempotencyHeaders,
  idempotencyKey,
  NextCursor,
  PageQuery,
  ProblemView,
  page,
  requires,
  sendAnswer,
} from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { ifMatchMissing, userNotFound } from "../problems.ts";
import { canonicalLocale } from "../profile.ts";
import { selectAudit } from "../store/audit.ts";
import { selectExport } from "../store/export.ts";
import { actorOf, actPath, auditCursor, invalid } from "./request.ts";
import { ExportView, IfMatchHeaders, OneUser, type Profile, ProfileBody, ReasonBody, UserView } from "./schemas.ts";

/** For oneself, or for an admin. */
const ownOrAdmin = { user: "own", admin: true } as const;

export function userRoutes(app: HttpApp, deps: Deps): void {
  readRoute(app, deps);
  updateRoute(app, deps);
  exportRoute(app, deps);
  deleteRoute(app, deps);
}

const etagOf = ({ version }: { readonly version: number }) => `"${version}"`;

function readRoute(app: HttpApp, { authenticate, readUser }: Deps): void {
  app.get(
    "/users/:user_id",
    {
      ...requires(authenticate, ownOrAdmin),
      schema: {
        operationId: "readUser",
        summary: "One user; the ETag is what a change has to name",
        params: OneUser,
        response: { 200: UserView, 404: ProblemView },
      },
    },
    async ({ params: { user_id } }, reply) => {
      const user = await readUser(user_id);
      if (!user) throw userNotFound("no user has this id");
      reply.header("etag", etagOf(user));
      return user;
    },
  );
}

function updateRoute(app: HttpApp, { authenticate, updateUser }: Deps): void {
  app.patch(
    "/users/:user_id",
    {
      ...requires(authenticate, ownOrAdmin),
      schema: {
        operationId: "updateUser",
        summary: "Changes name and language; of two who have seen the same version, one wins",
        params: OneUser,
        headers: IfMatchHeaders,
        body: ProfileBody,
        response: { 200: UserView, 404: ProblemView, 412: ProblemView, 428: ProblemView },
      },
    },
    async (request, reply) => {
      const user = await updateUser({
        actorId: actorOf(request),
        userId: request.params.user_id,
        version: versionIn(request.headers["if-match"]),
        profile: profileIn(request.body),
      });
      reply.header("etag", etagOf(user));
      return user;
    },
  );
}

const etag = /^"([1-9]\d{0,14})"$/;

/** Not `*` and no weak tag: whoever changes a user has seen it as it is. */
function versionIn(header: string | undefined): number {
  const field = "header.if-match";
  if (header === undefined) {
    const fields = [{ field, detail: "is missing" }];
    throw ifMatchMissing("send If-Match with the ETag of the user as you last saw it", { fields });
  }
  const version = etag.exec(header)?.[1];
  if (version === undefined) throw invalid(field, 'must be the ETag of the user as you last saw it, such as "3"');
  return Number(version);
}

function profileIn({ locale, ...rest }: Profile): Profile {
  if (typeof locale !== "string") return { ...rest, ...(locale === null && { locale }) };
  const canonical = canonicalLocale(locale);
  if (canonical === undefined) throw invalid("body.locale", "must be a language tag such as ja-JP");
  return { ...rest, locale: canonical };
}

function exportRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/users/:user_id/export",
    {
      ...requires(authenticate, ownOrAdmin),
      schema: {
        operationId: "exportUser",
        summary: "All that account keeps of a user; the audit by pages",
        params: OneUser,
        querystring: Type.Object(PageQuery),
        response: { 200: Type.Object({ ...ExportView, next_cursor: NextCursor }), 404: ProblemView },
      },
    },
    async ({ params: { user_id }, query }) => {
      const before = cursorOf(query, auditCursor)?.[0];
      const kept = await selectExport(db, user_id);
      if (!kept) throw userNotFound("no user has this id");
      const { rows, ...next } = await page(query, {
        read: (limit) => selectAudit(db, { user_id, before, limit }),
        name: (row) => String(row.audit_id),
      });
      return { ...kept, audit: rows, ...next };
    },
  );
}

function deleteRoute(app: HttpApp, { authenticate, deleteUser }: Deps): void {
  app.post(
    actPath("/users", "delete"),
    {
      ...requires(authenticate, ownOrAdmin),
      schema: {
        operationId: "deleteUser",
        summary: "Deletes all that is known of the person; the id stays, and means nobody",
        params: OneUser,
        headers: IdempotencyHeaders,
        body: ReasonBody,
        response: { 200: UserView, 404: ProblemView },
      },
    },
    async (request, reply) => {
      const { user_id: userId } = request.params;
      const asked = {
        key: idempotencyKey(request, request.caller),
        actorId: actorOf(request),
        userId,
        ...request.body,
      };
      return sendAnswer(reply, await deleteUser(asked));
    },
  );
}
