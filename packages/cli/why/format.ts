/** An explanation for a terminal. Its texts are untrusted, so control characters are replaced. */
import type { Explanation, TimelineEntry } from "@todoke/service/why";
import { formatTime, oneLine, type Style, styled, table } from "../output.ts";

const styles: Partial<Record<Explanation["outcome"], Style>> = {
  blocked: "red",
  dead: "red",
  done: "green",
  incomplete: "yellow",
  refused: "red",
  retrying: "yellow",
};
const sentenceMax = 1_000;
const textMax = 200;

export function formatExplanation(explanation: Explanation): string {
  const { outcome, sentence, cure, entries, truncated, links, parts } = explanation;
  const style = styles[outcome];
  const text = oneLine(sentence, sentenceMax);
  return [
    style ? styled(style, text) : text,
    ...(cure
      ? [
          `→ ${oneLine(cure.text, sentenceMax)}`,
          ...(cure.command === null ? [] : [`  ${oneLine(cure.command, sentenceMax)}`]),
        ]
      : []),
    ...(entries.length > 0 ? ["", table(entries.map(toCells))] : []),
    ...(truncated ? ["  (older entries are not shown)"] : []),
    ...(links.length > 0
      ? ["", `See also: ${links.map(({ kind, id }) => `${kind} ${oneLine(id, textMax)}`).join(", ")}`]
      : []),
    ...parts.flatMap(({ service, status, reason }) =>
      status === "failed" ? [`! ${service} did not answer completely: ${oneLine(reason ?? "", textMax)}`] : [],
    ),
  ].join("\n");
}

const toCells = (entry: TimelineEntry): string[] => [
  entry.at === null ? "" : formatTime(entry.at),
  entry.service,
  entry.kind,
  oneLine(entry.state ?? ""),
  [
    oneLine(entry.id, textMax),
    oneLine(entry.detail ?? "", textMax),
    ...(entry.attempt === null ? [] : [`attempt ${entry.attempt}`]),
    ...(entry.process === null ? [] : [`by ${oneLine(entry.process, textMax)}`]),
    ...(entry.error === null ? [] : [`error: ${oneLine(entry.error, textMax)}`]),
    ...(entry.next_retry_at === null ? [] : [`next attempt ${formatTime(entry.next_retry_at)}`]),
    ...(entry.blocked_by === null ? [] : [`behind ${entry.blocked_by.kind} ${entry.blocked_by.id}`]),
    ...(entry.trace_id === null ? [] : [`trace ${oneLine(entry.trace_id)}`]),
  ]
    .filter((text) => text !== "")
    .join("; "),
];
