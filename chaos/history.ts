/**
 * What the clients saw: one line for every request that was sent and what became of it, written as it happens. The
 * checker reads nothing else of them.
 */
import { createWriteStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { finished } from "node:stream/promises";

/** Success, a refusal for good, or neither is known: a timeout, a reset, a 5xx. */
export type End = "ok" | "refused" | "unknown";

/** What one command is, the same at every try. */
export interface Command {
  /** Unique, and part of the body, so that an effect can be traced back to it. */
  readonly id: string;
  readonly service: string;
  /** "grant". What it means is the service's to say; the checker asks it. */
  readonly kind: string;
  readonly caller: string;
  readonly path: string;
  readonly key: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** What must come of it: success unless it is meant to be refused. */
  readonly wants?: "refusal";
}

export interface Attempt {
  readonly command: Command;
  /** 1 for the first. Two that are sent at once have the same number. */
  readonly attempt: number;
  /** The process that was asked. */
  readonly via: string;
  /** Milliseconds since 1970, of the clients' clock. */
  readonly from: number;
  readonly to: number;
  readonly end: End;
  readonly status?: number;
  /** The bytes of the answer, as text. */
  readonly answer?: string;
  readonly replayed?: boolean;
  readonly why?: string;
}

/** A read of what was changed before: it must show at least what was answered then. */
export interface Read {
  readonly read: string;
  readonly via: string;
  readonly from: number;
  readonly answered: number;
  readonly seen: number;
}

export type Line = Attempt | Read;

export interface Writer<T> extends AsyncDisposable {
  write(line: T): void;
}

/** Writes JSON lines. Disposing it waits until they are with the system. */
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

/** A command with all its attempts, and what they say together. */
export interface Told {
  readonly command: Command;
  readonly attempts: readonly Attempt[];
  /** Refused only if every try was: one that got lost may have been carried out before or after. */
  readonly end: End;
}

export function commandsOf(lines: readonly Line[]): Told[] {
  const attempts = new Map<string, Attempt[]>();
  for (const line of lines) {
    if ("read" in line) continue;
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
