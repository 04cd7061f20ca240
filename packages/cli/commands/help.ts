/** The texts of `todoke help`. */
import type { Command } from "../command.ts";
import { table } from "../output.ts";
import manifest from "../package.json" with { type: "json" };
import type { ServiceEntry } from "../services.ts";

export function formatOverview(commands: readonly Command[], services: readonly ServiceEntry[]): string {
  const lines = [
    `Todoke ${manifest.version}: nothing lost, nothing doubled.`,
    "",
    "Usage: todoke <command> [options]",
    "",
    table([...commands.map(({ name, summary }) => [name, summary]), ["help", "show the help of a command"]]),
  ];
  if (services.length > 0)
    lines.push("", "Services:", "", table(services.map((s) => [s.name, String(s.port), s.summary])));
  lines.push("", "`todoke help <command>` shows the help of a command.");
  return lines.join("\n");
}

export function formatHelp(command: Command): string {
  const values = Object.entries(command.values ?? {}).map(([name, [value, summary]]) => [`${name} ${value}`, summary]);
  const options = [...values, ...Object.entries(command.switches), ["help", "show this help"]];
  return [
    `Usage: ${command.usage}`,
    "",
    command.details.replace(/^\n/, ""),
    "",
    "Options:",
    "",
    table(options.map(([name = "", summary = ""]) => [`--${name}`, summary])),
  ].join("\n");
}
