/** A Lua script and its SHA-1, by which the server caches it. */
import { hash } from "node:crypto";

export interface Script {
  readonly text: string;
  readonly sha1: string;
}

/** `keys` has every key that the script uses: a cluster routes by them, and access rules check them. */
export interface ScriptInput {
  readonly keys: string[];
  readonly arguments: string[];
}

export const createScript = (text: string): Script => ({ text, sha1: hash("sha1", text, "hex") });
