/** `todoke match export`: the tickets of a mode that have ended lately, for a simulation to play again. */
import { once } from "node:events";
import { chosen } from "../choice.ts";
import type { Call } from "../command.ts";
import { Misused } from "../faults.ts";
import { onDatabase } from "../service-database.ts";

const pageMax = 1_000;

export async function exportTickets({ env, services, names, values }: Call): Promise<number> {
  const { mode } = values;
  if (names.length > 0 || !mode) throw new Misused("Name the mode by --mode.");
  const withinHours = hoursOf(values.since ?? "7d");
  const [entry] = chosen(services, ["matchmaking"]);
  if (!entry) throw new Misused("There is no matchmaking here.");
  // Loaded only now, for with it comes the whole service.
  const { selectRecordedTickets } = await import("@todoke/matchmaking/recorded-tickets");
  await onDatabase({ entry, env, purpose: "todoke match" }, async ({ db }) => {
    for (let after = "", last = false; !last; ) {
      const page = await selectRecordedTickets(db, { mode, withinHours, after, limit: pageMax });
      const lines = page.map((ticket) => `${JSON.stringify(ticket)}\n`).join("");
      // A slow reader is waited for: a week of tickets need not fit into memory.
      if (!process.stdout.write(lines)) await once(process.stdout, "drain");
      after = page.at(-1)?.ticket_id ?? after;
      last = page.length < pageMax;
    }
  });
  return 0;
}

const daysMax = 3_650;

function hoursOf(since: string): number {
  const [, count, unit] = /^(\d{1,5})([hd])$/.exec(since) ?? [];
  const hours = Number(count) * (unit === "d" ? 24 : 1);
  if (hours >= 1 && hours <= daysMax * 24) return hours;
  throw new Misused(`--since is how far back: 1h to ${daysMax}d.`);
}
