/** Finds installed server binaries. */
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { type EngineBinary, EngineNotFound, type ServerName } from "./engine.ts";

/** Servers are installed in sbin folders, which the PATH of an ordinary user often lacks. */
const extraFolders = [
  "/usr/local/sbin",
  "/usr/local/bin",
  "/usr/sbin",
  "/usr/bin",
  "/opt/homebrew/sbin",
  "/opt/homebrew/bin",
];

/** PATH with the folders where servers are installed. */
export function searchPath(): string {
  const own = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  return [...new Set([...own, ...extraFolders])].join(delimiter);
}

export function findExecutable(name: string): string | undefined {
  return searchPath()
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find(isExecutable);
}

export async function findOnPath(engine: ServerName, names: readonly string[]): Promise<EngineBinary | EngineNotFound> {
  const file = names.map(findExecutable).find((found) => found !== undefined);
  if (file !== undefined) return { file, origin: `PATH (${file})` };
  const variable = `TEST_${engine.toUpperCase()}_URL`;
  return new EngineNotFound(`No ${names[0]} on PATH. Install it, or name a running one in ${variable}.`);
}

export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
