/** The acts of staff on one service. The gateway merges those of all services. */
import { guarded, page, parseCursor, selectStaffActs } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { type Static, Type } from "typebox";
import { type StaffRouteDeps, viewers } from "./deps.ts";
import { AuditPage, AuditQuery } from "./views.ts";

const Query = Type.Object(AuditQuery);

export function auditLogRoute({ app, prefix, authenticate, reads, hide }: StaffRouteDeps): void {
  app.get(
    `${prefix}/audit-log`,
    guarded(authenticate, viewers, {
      hide,
      passesOnRefusals: hide,
      operationId: "listStaffActs",
      summary: "List acts of staff",
      tags: ["Operations"],
      description: "Returns who did what, to what and why; newest first.",
      querystring: Query,
      response: { 200: AuditPage },
    }),
    async ({ query }) => readStaffActs(reads, query),
  );
}

export async function readStaffActs(db: Db, query: Static<typeof Query>): Promise<Static<typeof AuditPage>> {
  const [at, actId] = parseCursor(query, { parts: ["timeMicros", "bigint"] }) ?? [];
  const before = at === undefined || actId === undefined ? undefined : { at, actId };
  const { actor, target } = query;
  const { rows, ...next } = await page(query, {
    read: (limit) => selectStaffActs(db, { actor, target, before, limit }),
    name: (row) => `${row.at} ${row.act_id}`,
  });
  return { acts: rows as Static<typeof AuditPage>["acts"], ...next };
}
