/** All services at a glance, and what needs a person. */
import { named } from "@todoke/contracts/api";
import { guarded, type HttpApp } from "@todoke/http";
import { NeedView, ServiceOverviewView, type StaffReads } from "@todoke/service";
import { type Static, Type } from "typebox";
import type { Deps } from "../deps.ts";
import { askServices } from "../staff/ask-services.ts";
import { FailedServices } from "./schemas.ts";

const Overview = named("Overview", {
  at: Type.String({ format: "date-time" }),
  services: Type.Array(ServiceOverviewView),
  needs_you: Type.Array(NeedView, { description: "The most urgent first." }),
  failed: FailedServices,
});
type Overview = Static<typeof Overview>;
type Need = Overview["needs_you"][number];

export function overviewRoute(
  app: HttpApp,
  deps: Pick<Deps, "authenticate" | "upstreams"> & { readonly staffReads: StaffReads },
): void {
  app.get(
    "/v1/admin/overview",
    guarded(
      deps.authenticate,
      { staff: "VIEWER" },
      {
        operationId: "getOverview",
        summary: "Get an overview",
        tags: ["Operations"],
        description:
          "Returns the last hour of every service, its engines, and what needs a person, each with its cure.",
        response: { 200: Overview },
      },
    ),
    async (request): Promise<Overview> => {
      const { answers, failed } = await askServices(deps, request, {
        path: () => "/v1/admin/overview",
        own: deps.staffReads.overview,
      });
      const views = answers.map(({ value }) => value as { overview: Overview["services"][number]; needs: Need[] });
      return {
        at: new Date().toISOString(),
        services: views.map(({ overview }) => overview),
        needs_you: [...failed.map(notAnswering), ...views.flatMap(({ needs }) => needs)].sort(mostUrgentFirst),
        failed: [...failed],
      };
    },
  );
}

const notAnswering = ({ service, detail }: Overview["failed"][number]): Need => ({
  service,
  kind: "unready",
  table: null,
  count: 1,
  capped: false,
  detail,
  cure: { text: `Check that a process of ${service} runs and can be reached, and read its log.`, href: null },
});

const urgency: readonly Need["kind"][] = ["unready", "in-doubt", "audit", "dead", "parked", "late", "failing"];
const mostUrgentFirst = (a: Need, b: Need) => urgency.indexOf(a.kind) - urgency.indexOf(b.kind) || b.count - a.count;
