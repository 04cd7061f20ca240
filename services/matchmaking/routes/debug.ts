/** For those who run the service: the rules that hold now, and what lay in a queue and was no ticket. On the ops listener. */
import type { HttpApp } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { Type } from "typebox";
import type { ModeRules, Rules, Step } from "../rules/index.ts";
import { selectDamagedTickets } from "../store/damaged-tickets.ts";

const damagedMax = 100;

export function debugRoutes(app: HttpApp, { db, rules }: { readonly db: Db; readonly rules: () => Rules }): void {
  app.get(
    "/debug/matchmaking/rules",
    {
      schema: {
        operationId: "showRules",
        summary: "The rules that hold at this process, with what the file leaves open filled in",
        response: { 200: Type.Object({ version: Type.String(), modes: Type.Array(Type.Unknown()) }) },
      },
    },
    async () => ({ version: rules().version, modes: [...rules().modes.values()].map(viewOf) }),
  );

  app.get(
    "/debug/matchmaking/damaged",
    {
      schema: {
        operationId: "listDamagedTickets",
        summary: `What was set aside because it is no ticket, newest first; the last ${damagedMax}`,
        response: {
          200: Type.Object({
            damaged: Type.Array(
              Type.Object({
                ticket_id: Type.String(),
                mode: Type.String(),
                raw: Type.String({ description: "As much of it as could be kept." }),
                why: Type.String(),
                ended_at: Type.String({ format: "date-time" }),
              }),
            ),
          }),
        },
      },
    },
    async () => ({ damaged: await selectDamagedTickets(db, damagedMax) }),
  );
}

/** JSON has no word for a step without a limit. */
const stepsOf = (steps: readonly Step[]) =>
  steps.map(({ afterMs, limit }) => ({ afterMs, limit: limit === Number.POSITIVE_INFINITY ? "any" : limit }));

const viewOf = ({ skill, latency, ...rules }: ModeRules) => ({
  ...rules,
  ...(skill && { skill: { ...skill, steps: stepsOf(skill.steps) } }),
  ...(latency && { latency: { ...latency, steps: stepsOf(latency.steps) } }),
});
