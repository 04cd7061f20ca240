/** The rules of matchmaking and their simulation, for staff. */
import { Mode, SimulationQuery } from "@todoke/contracts/api";
import { Type } from "typebox";
import type { ForwardedRoute } from "./forward.ts";
import { read } from "./staff-acts.ts";

const matchmaking = { upstream: "matchmaking", tag: "Operations" } as const;

export const staffMatchmakingRoutes: readonly ForwardedRoute[] = [
  read({
    ...matchmaking,
    path: "/v1/admin/matchmaking/rules",
    operationId: "getMatchmakingRules",
    summary: "Get the matchmaking rules",
    description: "Returns the rules in use, with defaults filled in.",
  }),
  {
    ...read({
      ...matchmaking,
      path: "/v1/admin/matchmaking/queues/:mode/simulation",
      operationId: "simulateMode",
      summary: "Simulate a mode",
      description:
        "Runs generated players through the current rules of a mode, and returns how long they waited and how equal their " +
        "matches are. The same query returns the same figures.",
      params: Type.Object({ mode: Mode }),
      query: Type.Object(SimulationQuery),
    }),
    // It takes a core of the service, for up to 5 seconds.
    limit: "bulk",
    timeoutMs: 7_000,
  },
];
