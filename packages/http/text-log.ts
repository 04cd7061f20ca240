/** Log lines for people at a terminal: time, service, level and text, with requests and errors in a short form. */
import { type InspectColor, styleText } from "node:util";
import { printable } from "./printable.ts";

interface LogLine {
  readonly level: number;
  readonly time: string;
  readonly service?: string;
  readonly msg?: string;
  readonly req?: { readonly method: string; readonly route?: string };
  readonly status?: number;
  readonly code?: string;
  readonly ms?: number;
  readonly caller?: string;
  readonly err?: LoggedError;
}

interface LoggedError {
  readonly type: string;
  readonly message: string;
  readonly stack: string;
  readonly causes?: readonly LoggedError[];
}

const levels: Readonly<Record<number, readonly [name: string, color: InspectColor]>> = {
  10: ["trace", "gray"],
  20: ["debug", "gray"],
  30: ["info", "green"],
  40: ["warn", "yellow"],
  50: ["error", "red"],
  60: ["fatal", "red"],
};

/** Shown in a form of their own, or of no use at a terminal. */
const ownFields = new Set("level time service msg req status code ms caller err pid hostname version".split(" "));
const idFields = new Set("request_id trace_id span_id idempotency_key_hash address".split(" "));

/** As wide as the longest name of a service. */
const serviceWidth = 12;

/** Turns a line of JSON into text; empty for lines that repeat what the command prints. */
export function formatTextLine(json: string): string {
  const line = JSON.parse(json) as LogLine & Record<string, unknown>;
  if (line.msg?.startsWith("Server listening at ")) return "";
  const [level, color] = levels[line.level] ?? ["log", "gray"];
  const head = [
    styleText("gray", formatClock(line.time)),
    styleText("cyan", safe(line.service ?? "").padEnd(serviceWidth)),
    styleText(color, level.padEnd(5)),
  ];
  const others = Object.entries(line).filter(
    ([name]) => !ownFields.has(name) && (line.level >= 50 || !idFields.has(name)),
  );
  const fields = others.map(([name, value]) => styleText("gray", `${name}=${safe(formatValue(value))}`));
  const text = [...head, safe(line.msg ?? ""), ...formatRequest(line), ...fields].filter(Boolean).join(" ");
  return `${text}\n${line.err ? formatError(line.err, line.msg) : ""}`;
}

/** Local time: a person compares it with a clock on the wall. */
const formatClock = (time: string) => new Date(time).toTimeString().slice(0, 8);

function formatRequest({ req, status, code, ms, caller }: LogLine): string[] {
  if (!req) return [];
  return [
    safe(`${req.method} ${req.route ?? "(no route)"}`),
    styleText(status && status >= 500 ? "red" : "yellow", String(status ?? "")),
    safe(code ?? ""),
    ms === undefined ? "" : `${ms} ms`,
    styleText("gray", safe(caller ?? "")),
  ];
}

const formatValue = (value: unknown): string => (typeof value === "object" ? JSON.stringify(value) : String(value));

/** The chain of causes, then where the innermost error was thrown. A message that the line has already is not repeated. */
function formatError(error: LoggedError, shown: string | undefined): string {
  const chain = [error];
  for (let [next] = error.causes ?? []; next; [next] = next.causes ?? []) chain.push(next);
  const messages = chain.filter(({ message }) => message !== shown).map(({ type, message }) => `${type}: ${message}`);
  const frames = (chain.at(-1)?.stack ?? "")
    .split("\n")
    .filter((frame) => /^\s+at /.test(frame) && !/\bnode:/.test(frame));
  const lines = [...messages, ...frames.slice(0, framesMax).map((frame) => frame.trim())];
  return lines.map((text) => `${styleText("gray", `         ${safe(text)}`)}\n`).join("");
}

/** Enough to find the place. JSON has all of them. */
const framesMax = 3;

/** Text of a caller cannot start a line or control the terminal. */
const safe = (text: string): string =>
  printable(text.replace(/\p{Cc}/gu, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`));
