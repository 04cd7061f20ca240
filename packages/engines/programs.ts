/** Where servers are installed. */
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { type EngineName, NotFound, type Program } from "./engine.ts";

/** Servers live in sbin folders, which an ordinary user's PATH often lacks. */
const alsoLookIn = [
  "/usr/local/sbin",
  "/usr/local/bin",
  "/usr/sbin",
  "/usr/bin",
  "/opt/homebrew/sbin",
  "/opt/homebrew/bin",
];

/** The search path for servers, as a PATH variable. */
export function searchPath(): string {
  const own = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  return [...new Set([...own, ...alsoLookIn])].join(delimiter);
}

export function which(name: string): string | undefined {
  return searchPath()
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find(isExecutable);
}

export async function findProgram(engine: EngineName, names: readonly string[]): Promise<Program | NotFound> {
  const file = names.map(which).find((found) => found !== undefined);
  if (file !== undefined) return { file, origin: `PATH (${file})` };
  return new NotFound(
    engine,
    `No ${names[0]} on PATH.`,
    `Install it, or name a running one in TEST_${engine.toUpperCase()}_URL.`,
  );
}

export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
