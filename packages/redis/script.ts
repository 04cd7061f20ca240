/** A script, and the name by which a server that has seen it knows it. */
import { hash } from "node:crypto";

export interface Script {
  readonly text: string;
  readonly sha1: string;
}

/** Every key that the script touches is among `keys`: so a cluster can send it to its slot, and access rules see them. */
export interface ScriptInput {
  readonly keys: string[];
  readonly arguments: string[];
}

export const scriptOf = (text: string): Script => ({ text, sha1: hash("sha1", text, "hex") });
