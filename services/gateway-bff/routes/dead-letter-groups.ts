/** The dead letters of all services by error. */
import { named } from "@todoke/contracts/api";
import { guarded, type HttpApp } from "@todoke/http";
import { DeadLetterGroupsView, readDeadLetterGroups, type StaffReads } from "@todoke/service";
import { type Static, Type } from "typebox";
import type { Deps } from "../deps.ts";
import { askServices } from "../staff/ask-services.ts";
import { FailedServices } from "./schemas.ts";

const Groups = named("AllDeadLetterGroups", { ...DeadLetterGroupsView, failed: FailedServices });
type Groups = Static<typeof Groups>;

const Query = Type.Object({
  service: Type.Optional(Type.String({ minLength: 1, maxLength: 63, description: "Only this service." })),
  table: Type.Optional(Type.String({ minLength: 1, maxLength: 63, description: "Only this table." })),
});

export function deadLetterGroupsRoute(
  app: HttpApp,
  deps: Pick<Deps, "authenticate" | "upstreams"> & { readonly staffReads: StaffReads },
): void {
  app.get(
    "/v1/admin/dead-letters/groups",
    guarded(
      deps.authenticate,
      { staff: "VIEWER" },
      {
        operationId: "listAllDeadLetterGroups",
        summary: "Group dead letters by error",
        tags: ["Operations"],
        description: "Returns the dead letters of all services by table and error, the most frequent error first.",
        querystring: Query,
        response: { 200: Groups },
      },
    ),
    async (request): Promise<Groups> => {
      const { service, table } = request.query;
      const { answers, failed } = await askServices(deps, request, {
        ...(service !== undefined && { services: [service] }),
        path: () => "/v1/admin/dead-letters/groups",
        own: () => readDeadLetterGroups(deps.staffReads),
      });
      const values = answers.map(({ value }) => value as Omit<Groups, "failed">);
      const isWanted = (row: { readonly table: string }) => table === undefined || row.table === table;
      return {
        groups: values.flatMap(({ groups }) => groups.filter(isWanted)).sort((a, b) => b.count - a.count),
        tables: values.flatMap(({ tables }) => tables.filter(isWanted)),
        failed: [...failed],
      };
    },
  );
}
