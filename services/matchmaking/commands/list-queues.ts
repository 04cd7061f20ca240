/** Lists the modes and what the rules of each require of a ticket. */
import type { ModeRules, Rules } from "../rules/index.ts";

export const listQueues = (rules: () => Rules) => async () => [...rules().modes.values()].map(toView);

function toView(rules: ModeRules) {
  const { mode, teams, teamSize, partyMax, ticketMs, heartbeatMs, skill, regions, latency, setByBackend } = rules;
  return {
    mode,
    teams,
    team_size: teamSize,
    party_max: partyMax,
    ticket_seconds: ticketMs / 1_000,
    ...(heartbeatMs !== undefined && { heartbeat_seconds: heartbeatMs / 1_000 }),
    ...(setByBackend && { set_by_backend: [...setByBackend] }),
    attributes: [
      ...(skill ? [{ name: skill.attribute, is: "number" as const }] : []),
      ...(regions ? [{ name: regions.attribute, is: "regions" as const }] : []),
      ...(latency ? [{ name: latency.attribute, is: "latencies" as const }] : []),
    ],
  };
}
