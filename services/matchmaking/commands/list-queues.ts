/** The modes that there are, and what the rules of each ask of a ticket. */
import type { ModeRules, Rules } from "../rules/index.ts";

export interface QueueView {
  readonly mode: string;
  readonly teams: number;
  readonly team_size: number;
  readonly party_max: number;
  readonly ticket_seconds: number;
  readonly heartbeat_seconds?: number;
  /** Attributes, and `party_size`, that only a back-end may set. */
  readonly set_by_backend?: string[];
  /** What a ticket has to say of itself. */
  readonly attributes: { readonly name: string; readonly is: "number" | "regions" | "latencies" }[];
}

export const listQueues = (rules: () => Rules) => async (): Promise<QueueView[]> =>
  [...rules().modes.values()].map(viewOf);

function viewOf(rules: ModeRules): QueueView {
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
