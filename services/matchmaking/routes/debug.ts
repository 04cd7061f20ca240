/** Debug routes on the ops listener: the current rules and the quarantined tickets. */
import { named } from "@todoke/contracts/api";
import type { HttpApp } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { Type } from "typebox";
import type { ModeRules, Rules, Step } from "../rules/index.ts";
import { selectDamagedTickets } from "../store/damaged-tickets.ts";

const damagedMax = 100;

const RulesView = named("MatchmakingRules", {
  version: Type.String({ description: "Changes with every change of the rules." }),
  modes: Type.Array(Type.Unknown(), { description: "The rules of each mode, as in the file." }),
});
const DamagedTicketView = named("DamagedTicket", {
  ticket_id: Type.String(),
  mode: Type.String(),
  raw: Type.String({ description: "The data as found, shortened to 10,000 characters." }),
  why: Type.String({ description: "Why it cannot be read." }),
  ended_at: Type.String({ format: "date-time" }),
});
const DamagedTicketsView = named("DamagedTickets", { damaged: Type.Array(DamagedTicketView) });

export function debugRoutes(app: HttpApp, { db, rules }: { readonly db: Db; readonly rules: () => Rules }): void {
  app.get(
    "/debug/matchmaking/rules",
    {
      schema: {
        operationId: "getRules",
        summary: "Get the rules",
        tags: ["Operations"],
        description: "Returns the current rules of this process, with defaults filled in.",
        response: { 200: RulesView },
      },
    },
    async () => ({ version: rules().version, modes: [...rules().modes.values()].map(toView) }),
  );

  app.get(
    "/debug/matchmaking/damaged",
    {
      schema: {
        operationId: "listDamagedTickets",
        summary: "List quarantined tickets",
        tags: ["Operations"],
        description: `Returns the last ${damagedMax} quarantined tickets, newest first.`,
        response: { 200: DamagedTicketsView },
      },
    },
    async () => ({ damaged: await selectDamagedTickets(db, damagedMax) }),
  );
}

/** JSON has no Infinity. */
const toSteps = (steps: readonly Step[]) =>
  steps.map(({ afterMs, limit }) => ({ afterMs, limit: limit === Number.POSITIVE_INFINITY ? "any" : limit }));

const toView = ({ skill, latency, ...rules }: ModeRules) => ({
  ...rules,
  ...(skill && { skill: { ...skill, steps: toSteps(skill.steps) } }),
  ...(latency && { latency: { ...latency, steps: toSteps(latency.steps) } }),
});
