/** What the checks against other software share: a cache, and programs that may be missing. */
import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { findExecutable } from "@todoke/engines";
import { root } from "../test/command.ts";
import type { Result } from "../test/result.ts";

/** Runs the checks against one program. */
export type Peer = (signal: AbortSignal) => Promise<Result>;

/** Its message says what to install. */
export class MissingProgram extends Error {
  override readonly name = "MissingProgram";
}

/** The path of a program that must be installed. */
export function findProgram(name: string, advice: string): string {
  const file = findExecutable(name);
  if (!file) throw new MissingProgram(`there is no ${name} on PATH. ${advice}`);
  return file;
}

/** A folder for downloads that stays between runs. Git ignores it. */
export function cacheFolder(name: string): string {
  const folder = join(root, ".todoke/interop", name);
  mkdirSync(folder, { recursive: true });
  return folder;
}

const outputMax = 64 * 1024 * 1024;

export interface OutputOptions {
  readonly signal: AbortSignal;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Returns what a program prints; rejects with it if the program fails. */
export async function outputOf(
  [program = "", ...args]: readonly string[],
  { signal, cwd = root, env }: OutputOptions,
): Promise<string> {
  const options = { signal, cwd, env: { ...process.env, ...env }, maxBuffer: outputMax };
  const { stdout, stderr } = await promisify(execFile)(program, [...args], options);
  return stdout || stderr; // Java prints its version to the second.
}

export const report = (line: string): void => console.log(`  ${line}`);
