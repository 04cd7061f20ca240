/** What may be ordered: read from a file at the start. */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { readInstruments } from "./read-instruments.ts";
import type { Instruments } from "./types.ts";

export { InstrumentsFaulty, readInstruments } from "./read-instruments.ts";
export { refuseOrder } from "./refuse-order.ts";
export type { Instruments } from "./types.ts";

const builtIn = new URL("built-in.yaml", import.meta.url);

/** The file's, or those that are built in. Throws `InstrumentsFaulty`, or what the system says where it cannot be read. */
export const openInstruments = (path?: string): Instruments =>
  readInstruments(readFileSync(path ?? builtIn, "utf8"), path === undefined ? "built-in.yaml" : basename(path));
