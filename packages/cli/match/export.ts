/** `todoke match export`: prints the recently ended tickets of a mode, as input for a simulation. */
import { once } from "node:events";
import type { Invocation } from "../command.ts";
import { UsageError } from "../errors.ts";
import { selectService } from "../select-services.ts";
import { withDatabase } from "../service-database.ts";

const pageMax = 1_000;

export async function exportTickets({ env, services, args, values }: Invocation): Promise<number> {
  const { mode } = values;
  if (args.length > 0 || !mode) throw new UsageError("Give the mode with --mode.");
  const withinHours = parseHours(values.since ?? "7d");
  const entry = selectService(services, "matchmaking");
  // Imported here because it loads the whole service.
  const { selectRecordedTickets } = await import("@todoke/matchmaking/recorded-tickets");
  await withDatabase({ entry, env, purpose: "todoke match" }, async ({ db }) => {
    for (let after = "", last = false; !last; ) {
      const page = await selectRecordedTickets(db, { mode, withinHours, after, limit: pageMax });
      const lines = page.map((ticket) => `${JSON.stringify(ticket)}\n`).join("");
      // Wait for a slow reader, so that a week of tickets need not fit into memory.
      if (!process.stdout.write(lines)) await once(process.stdout, "drain");
      after = page.at(-1)?.ticket_id ?? after;
      last = page.length < pageMax;
    }
  });
  return 0;
}

const daysMax = 3_650;

function parseHours(since: string): number {
  const [, count, unit] = /^(\d{1,5})([hd])$/.exec(since) ?? [];
  const hours = Number(count) * (unit === "d" ? 24 : 1);
  if (hours >= 1 && hours <= daysMax * 24) return hours;
  throw new UsageError(`--since is 1h to ${daysMax}d.`);
}
