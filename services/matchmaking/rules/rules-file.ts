/** Reads rules files. */
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { readRules } from "./read-rules.ts";
import type { Rules } from "./types.ts";

const builtInUrl = new URL("built-in.yaml", import.meta.url);

export const builtInRules = async (): Promise<Rules> => readRules(await readFile(builtInUrl, "utf8"), "built-in.yaml");

export const readRulesFile = async (path: string): Promise<Rules> =>
  readRules(await readFile(path, "utf8"), basename(path));
