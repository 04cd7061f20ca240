/** What staff reads of the rules, and what they do to players: a simulation with the code of the matcher. */
import { Mode, named, orNull, SimulationQuery } from "@todoke/contracts/api";
import { guarded, type HttpApp, problems } from "@todoke/http";
import { type Static, Type } from "typebox";
import type { Deps } from "../deps.ts";
import { simulationTooLarge, unknownMode } from "../problems.ts";
import type { ModeRules, Step } from "../rules/index.ts";
import { OneQueue } from "./schemas.ts";

const viewers = { staff: "VIEWER" } as const;

const seconds = Type.Number({ minimum: 0 });
const count = Type.Integer({ minimum: 0 });

const StepView = named("RuleStep", {
  after_seconds: seconds,
  limit: orNull(Type.Number({ description: "Null: no limit." })),
});
const StepsView = (title: string) => named(title, { attribute: Type.String(), steps: Type.Array(StepView) });

const ModeRulesView = named("ModeRules", {
  mode: Mode,
  teams: count,
  team_size: count,
  party_max: count,
  ticket_seconds: seconds,
  heartbeat_seconds: orNull(seconds),
  avoid_last_opponent_seconds: orNull(seconds),
  set_by_backend: Type.Array(Type.String()),
  skill: orNull(StepsView("SkillRule")),
  latency: orNull(StepsView("LatencyRule")),
  regions: orNull(Type.String({ description: "The attribute with the regions." })),
});
type ModeRulesView = Static<typeof ModeRulesView>;

const RulesView = named("RulesInUse", {
  version: Type.String({ description: "Changes with every change of the rules." }),
  modes: Type.Array(ModeRulesView),
});

const Percentiles = orNull(
  named("Percentiles", { p50: Type.Number(), p90: Type.Number(), p99: Type.Number(), max: Type.Number() }),
);
const Bars = Type.Array(
  named("HistogramBar", {
    from: Type.Number(),
    to: orNull(Type.Number({ description: "Null: all higher values." })),
    count,
  }),
);
const SimulationView = named("Simulation", {
  mode: Mode,
  rules_version: Type.String(),
  tickets: count,
  matches: count,
  matched: Type.Integer({ minimum: 0, description: "Tickets, as all counts except `matches`." }),
  expired: count,
  lasted_seconds: Type.Number({ description: "In simulated time." }),
  waiting_seconds: Percentiles,
  skill_gap: Percentiles,
  team_gap: Percentiles,
  waiting_histogram: Bars,
  skill_gap_histogram: Bars,
});

export function staffRoutes(app: HttpApp, deps: Deps): void {
  rulesRoute(app, deps);
  simulationRoute(app, deps);
}

function rulesRoute(app: HttpApp, { authenticate, readRules }: Deps): void {
  app.get(
    "/v1/admin/matchmaking/rules",
    guarded(authenticate, viewers, {
      operationId: "getMatchmakingRules",
      summary: "Get the matchmaking rules",
      tags: ["Operations"],
      description: "Returns the rules that the process that answers uses now, with defaults filled in.",
      response: { 200: RulesView },
    }),
    async () => {
      const { version, modes } = await readRules();
      return { version, modes: [...modes.values()].map(toRulesView) };
    },
  );
}

function simulationRoute(app: HttpApp, { authenticate, simulateMode }: Deps): void {
  app.get(
    "/v1/admin/matchmaking/queues/:mode/simulation",
    guarded(authenticate, viewers, {
      operationId: "simulateMode",
      summary: "Simulate a mode",
      tags: ["Operations"],
      description:
        "Runs generated players through the current rules of a mode, and returns how long they waited and how equal their matches are. " +
        "The same query returns the same figures. A process runs one simulation at a time, for 5 seconds at the most.",
      params: OneQueue,
      querystring: Type.Object(SimulationQuery),
      refusals: [problems.rateLimited, simulationTooLarge, unknownMode],
      response: { 200: SimulationView },
    }),
    async ({ params: { mode }, query }) => {
      const {
        players = 2_000,
        per_minute: perMinute = 1_200,
        seed = 1,
        skill_mean = 1_500,
        skill_deviation = 300,
      } = query;
      const skill = { mean: skill_mean, deviation: skill_deviation };
      const { rulesVersion, figures, waiting, skillGaps } = await simulateMode(mode, {
        players,
        perSecond: perMinute / 60,
        seed,
        skill,
      });
      const { tickets, matches, matched, expired, lasted_seconds, waiting_seconds, skill_gap, team_gap } = figures;
      return {
        mode,
        rules_version: rulesVersion,
        tickets,
        matches,
        matched,
        expired: expired.timeout + expired.heartbeat,
        lasted_seconds,
        waiting_seconds,
        skill_gap,
        team_gap,
        waiting_histogram: [...waiting],
        skill_gap_histogram: [...skillGaps],
      };
    },
  );
}

/** JSON has no Infinity. */
const toSteps = (steps: readonly Step[]) =>
  steps.map(({ afterMs, limit }) => ({
    after_seconds: afterMs / 1_000,
    limit: limit === Number.POSITIVE_INFINITY ? null : limit,
  }));

const toSeconds = (ms: number | undefined) => (ms === undefined ? null : ms / 1_000);

function toRulesView(rules: ModeRules): ModeRulesView {
  const { mode, teams, teamSize, partyMax, ticketMs, heartbeatMs, avoidLastOpponentMs } = rules;
  const { setByBackend = [], skill, latency, regions } = rules;
  return {
    mode,
    teams,
    team_size: teamSize,
    party_max: partyMax,
    ticket_seconds: ticketMs / 1_000,
    heartbeat_seconds: toSeconds(heartbeatMs),
    avoid_last_opponent_seconds: toSeconds(avoidLastOpponentMs),
    set_by_backend: [...setByBackend],
    skill: skill ? { attribute: skill.attribute, steps: toSteps(skill.steps) } : null,
    latency: latency ? { attribute: latency.attribute, steps: toSteps(latency.steps) } : null,
    regions: regions?.attribute ?? null,
  };
}
