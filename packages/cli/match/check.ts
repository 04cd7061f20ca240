/** `todoke match check`: checks a rules file and summarizes its modes. */
import { isFifo, type ModeRules } from "@todoke/matchmaking/rules";
import type { Invocation } from "../command.ts";
import { UsageError } from "../errors.ts";
import { plural, print, table } from "../output.ts";
import { readRules } from "./read-rules.ts";

export async function check({ args, values }: Invocation): Promise<number> {
  if (args.length > 0) throw new UsageError("Give the file with --rules.");
  const { modes, version } = await readRules(values.rules);
  const rows = [...modes.values()].map((mode) => [
    mode.mode,
    formatSize(mode),
    formatCriteria(mode),
    formatLifetime(mode),
  ]);
  print(`Valid: ${plural(modes.size, "mode")}, version ${version}.\n\n${table(rows)}`);
  return 0;
}

const formatSize = ({ teams, teamSize, partyMax }: ModeRules): string =>
  `${teams} teams of ${teamSize}${partyMax > 1 ? `, parties up to ${partyMax}` : ""}`;

function formatCriteria(rules: ModeRules): string {
  if (isFifo(rules)) return "first come, first served";
  const { skill, regions, latency, avoidLastOpponentMs } = rules;
  const named = Object.entries({ skill, regions, latency, "last opponents": avoidLastOpponentMs });
  const weighed = named.flatMap(([name, rule]) => (rule === undefined ? [] : [name]));
  return weighed.length > 0 ? `by ${weighed.join(", ")}` : "first come, first served, by party";
}

const formatLifetime = ({ ticketMs, heartbeatMs }: ModeRules): string =>
  `tickets expire after ${ticketMs / 1000} s${heartbeatMs === undefined ? "" : `, heartbeat within ${heartbeatMs / 1000} s`}`;
