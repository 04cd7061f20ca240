/** Starts and hears a contender's process. It never outlives its owner's interest: disposing it kills it. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Told } from "./process.ts";

export interface Child extends AsyncDisposable {
  /** Resolves when it says so; rejects when it ends before. */
  said(what: string): Promise<unknown>;
  /** kill -9, and gone when this resolves. */
  kill(): Promise<void>;
}

/** Nothing here takes half as long; whoever does hangs, and would keep the bench from ending. */
const endsWithinMs = 15 * 60_000;

const program = fileURLToPath(new URL("./process.ts", import.meta.url));

export function start(told: Told): Child {
  const child = fork(program, [JSON.stringify(told)], { execArgv: [], serialization: "advanced" });
  const gone = once(child, "exit");
  const tooLong = setTimeout(() => child.kill("SIGKILL"), endsWithinMs);
  const heard = new Map<string, PromiseWithResolvers<unknown>>();
  const about = (what: string) => {
    const known = heard.get(what) ?? Promise.withResolvers<unknown>();
    heard.set(what, known);
    known.promise.catch(() => {}); // Heard by whoever asks.
    return known;
  };
  child.on("message", ({ what, value }: { what: string; value: unknown }) => about(what).resolve(value));
  void gone.then(([code, signal]) => {
    clearTimeout(tooLong);
    const error = new Error(`${told.contender}, ${told.role}: ended (${signal ?? code}) before it said so`);
    for (const what of ["ready", "holding", "answer"]) about(what).reject(error);
  });
  async function kill(): Promise<void> {
    child.kill("SIGKILL");
    await gone;
  }
  return { said: (what) => about(what).promise, kill, [Symbol.asyncDispose]: kill };
}

/** Plays a role to its end. */
export async function play(told: Told): Promise<unknown> {
  await using child = start(told);
  return await child.said("answer");
}
