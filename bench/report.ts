/** Turns results into the page that people read. */
import type { Result } from "./kernel.ts";

export interface About {
  readonly date: string;
  readonly machine: Readonly<Record<string, string | number>>;
  readonly versions: Readonly<Record<string, string>>;
  readonly postgresSettings: Readonly<Record<string, string>>;
}

export function asMarkdown(results: readonly Result[], about?: About): string {
  const parts = about ? [introduction(about)] : [];
  for (const { title, figures, ratios } of results) {
    parts.push(`## ${title[0]?.toUpperCase()}${title.slice(1)}\n`);
    if (figures.length > 0) {
      parts.push("| what | per second, median of 3 | rounds |\n|---|---|---|");
      for (const { name, perSecond, rounds } of figures) {
        parts.push(
          `| ${name} | ${perSecond.toLocaleString("en")} | ${rounds.map((r) => r.toLocaleString("en")).join(", ")} |`,
        );
      }
      parts.push("");
    }
    parts.push(...Object.entries(ratios).map(([name, value]) => `- **${name}: ${value}**`), "");
  }
  return `${parts.join("\n")}\n`;
}

function introduction({ date, machine, versions, postgresSettings }: About): string {
  const list = (of: Readonly<Record<string, string | number>>) =>
    Object.entries(of)
      .map(([name, value]) => `${name} ${value}`)
      .join(", ");
  return `# Performance

Made by \`npm run bench\` on ${date}; the raw rounds are in \`bench/results.json\`. Contenders run by turns in one run, so
compare the ratios: absolute figures move by 10 to 20 % from run to run, and client and servers share the machine.

- Machine: ${list(machine)}
- Engines: ${list(versions)}
- PostgreSQL: fsync, synchronous_commit and full_page_writes on; ${list(postgresSettings)}; the rest as it comes
- JetStream acknowledges before it syncs to disk (its default), so its figures are not durable per message
`;
}
