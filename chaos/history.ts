/** The clients' history: one line per request with its outcome. The checker knows nothing else about the clients. */
import { createWriteStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { finished } from "node:stream/promises";
import type { TicketResponse } from "../flows/player-load.ts";

/** Success, a permanent rejection, or unknown: a timeout, a reset, a 5xx. */
export type End = "ok" | "refused" | "unknown";

/** A command; all its attempts are equal. */
export interface Command {
  /** Unique, and part of the body, so that an effect can be traced back to it. */
  readonly id: string;
  readonly service: string;
  /** "grant". The service defines what it means. */
  readonly kind: string;
  readonly caller: string;
  /** Default: POST. A DELETE has no body, so its path names what its effect is traced by. */
  readonly method?: "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly key: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The expected outcome, if it is not success. */
  readonly wants?: "refusal";
}

export interface Attempt {
  readonly command: Command;
  /** Counted from 1. Two that are sent at once have the same number. */
  readonly attempt: number;
  /** The process that was called. */
  readonly via: string;
  /** Milliseconds since 1970, of the clients' clock. */
  readonly from: number;
  readonly to: number;
  readonly end: End;
  readonly status?: number;
  /** The bytes of the answer, as text. */
  readonly answer?: string;
  readonly replayed?: boolean;
  readonly reason?: string;
  readonly retryAfter?: string;
}

/** A read after a change; it must not return an older version. */
export interface Read {
  readonly read: string;
  readonly via: string;
  readonly from: number;
  readonly answered: number;
  readonly seen: number;
}

/** A step of a player or of the admin at the gateway. */
export interface Act {
  readonly act: "log in" | "request" | "log out" | "suspend" | "reinstate";
  /** Whom it is about. */
  readonly player: string;
  /** The session that it was made with. */
  readonly session?: string;
  readonly path?: string;
  readonly via: string;
  readonly from: number;
  readonly to: number;
  /** Missing if there was no response. */
  readonly status?: number;
  /** The user in the response. */
  readonly userId?: string;
}

export type Line = Attempt | Read | Act | TicketResponse;

export const isTicketResponse = (line: Line): line is TicketResponse => "ticketId" in line;

export const isAct = (line: Line): line is Act => "act" in line;

export interface Writer<T> extends AsyncDisposable {
  write(line: T): void;
}

/** Writes JSON lines. Disposing it waits until they are written. */
export function openLines<T>(file: string): Writer<T> {
  const stream = createWriteStream(file);
  return {
    write: (line) => void stream.write(`${JSON.stringify(line)}\n`),
    async [Symbol.asyncDispose]() {
      stream.end();
      await finished(stream);
    },
  };
}

export async function readLines<T>(file: string): Promise<T[]> {
  const text = await readFile(file, "utf8");
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/** A command with its attempts and overall outcome. */
export interface CommandHistory {
  readonly command: Command;
  readonly attempts: readonly Attempt[];
  /** Refused only if every attempt was: a lost attempt may have taken effect. */
  readonly end: End;
}

export function groupCommands(lines: readonly Line[]): CommandHistory[] {
  const attempts = new Map<string, Attempt[]>();
  for (const line of lines) {
    if (!("command" in line)) continue;
    const known = attempts.get(line.command.id);
    if (known) known.push(line);
    else attempts.set(line.command.id, [line]);
  }
  return [...attempts.values()].map((all) => ({
    command: (all[0] as Attempt).command,
    attempts: all,
    end: all.some(({ end }) => end === "ok") ? "ok" : all.every(({ end }) => end === "refused") ? "refused" : "unknown",
  }));
}
