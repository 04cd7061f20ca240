/** The instruments that can be ordered, read from a file at the start. */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { readInstruments } from "./read-instruments.ts";
import type { Instruments } from "./types.ts";

export { checkOrder } from "./check-order.ts";
export { InstrumentsError as InstrumentsFaulty, readInstruments } from "./read-instruments.ts";
export type { Instruments } from "./types.ts";

const builtIn = new URL("built-in.yaml", import.meta.url);

/** Those in the file, or the built-in ones. Throws `InstrumentsError`, or a system error if the file cannot be read. */
export const openInstruments = (path?: string): Instruments =>
  readInstruments(readFileSync(path ?? builtIn, "utf8"), path === undefined ? "built-in.yaml" : basename(path));
