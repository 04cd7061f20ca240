/** What the last audit of the service found. */
import { named, orNull } from "@todoke/contracts/api";
import { guarded } from "@todoke/http";
import { readLastAudit } from "@todoke/kernel/audit";
import { Type } from "typebox";
import { type StaffRouteDeps, viewers } from "./deps.ts";

const time = orNull(Type.String({ format: "date-time" }));

const LastAudit = named("LastAudit", {
  started_at: Type.Optional(time),
  finished_at: Type.Optional(time),
  violations: Type.Integer({ minimum: 0 }),
  findings: Type.Array(
    named("AuditFinding", {
      rule: Type.String({ description: "What does not hold." }),
      about: Type.String({ description: "The row." }),
      detail: Type.String(),
    }),
    { description: "At most 20 for each rule." },
  ),
});

export function lastAuditRoute({ app, prefix, authenticate, service, reads, hide }: StaffRouteDeps): void {
  app.get(
    `${prefix}/last-audit`,
    guarded(authenticate, viewers, {
      hide,
      passesOnRefusals: hide,
      operationId: "getLastAudit",
      summary: "Get the last audit",
      tags: ["Operations"],
      description:
        "Returns when the service last compared its own tables, and what it found. No times: it has not yet.",
      response: { 200: LastAudit },
    }),
    async () => {
      const last = await readLastAudit(reads, service);
      if (!last) return { violations: 0, findings: [] };
      return { ...last, findings: [...last.findings] };
    },
  );
}
