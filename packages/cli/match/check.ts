/** `todoke match check`: whether a rules file is good, and what its modes come to. */
import { isFifo, type ModeRules } from "@todoke/matchmaking/rules";
import type { Call } from "../command.ts";
import { Misused } from "../faults.ts";
import { plural, say, table } from "../output.ts";
import { rulesOf } from "./rules-of.ts";

export async function check({ names, values }: Call): Promise<number> {
  if (names.length > 0) throw new Misused("The file is named by --rules.");
  const { modes, version } = await rulesOf(values.rules);
  const rows = [...modes.values()].map((mode) => [mode.mode, sizeOf(mode), weighs(mode), lifeOf(mode)]);
  say(`Good: ${plural(modes.size, "mode")}, version ${version}.\n\n${table(rows)}`);
  return 0;
}

const sizeOf = ({ teams, teamSize, partyMax }: ModeRules): string =>
  `${teams} teams of ${teamSize}${partyMax > 1 ? `, parties up to ${partyMax}` : ""}`;

function weighs(rules: ModeRules): string {
  if (isFifo(rules)) return "in the order of waiting";
  const { skill, regions, latency, avoidLastOpponentMs } = rules;
  const named = Object.entries({ skill, regions, latency, "last opponents": avoidLastOpponentMs });
  const weighed = named.flatMap(([name, rule]) => (rule === undefined ? [] : [name]));
  return weighed.length > 0 ? `by ${weighed.join(", ")}` : "in the order of waiting, by party";
}

const lifeOf = ({ ticketMs, heartbeatMs }: ModeRules): string =>
  `tickets live ${ticketMs / 1000} s${heartbeatMs === undefined ? "" : `, heartbeat within ${heartbeatMs / 1000} s`}`;
