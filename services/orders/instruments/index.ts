/** The instruments that can be ordered, read from a file at the start. */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import type { Market } from "../brokers/index.ts";
import { formatDecimal } from "../order/decimal.ts";
import { readInstruments } from "./read-instruments.ts";
import type { Instruments } from "./types.ts";

export { checkOrder } from "./check-order.ts";
export { InstrumentsError, readInstruments } from "./read-instruments.ts";
export type { Instruments } from "./types.ts";

const builtIn = new URL("built-in.yaml", import.meta.url);

/** Those in the file, or the built-in ones. Throws `InstrumentsError`, or a system error if the file cannot be read. */
export const openInstruments = (path?: string): Instruments =>
  readInstruments(readFileSync(path ?? builtIn, "utf8"), path === undefined ? "built-in.yaml" : basename(path));

/** The instruments with a reference price, as the paper broker trades them. */
export function marketsOf({ byName }: Instruments): ReadonlyMap<string, Market> {
  const markets = new Map<string, Market>();
  for (const { name, reference_price, tick, step } of byName.values())
    if (reference_price)
      markets.set(name, {
        referencePrice: formatDecimal(reference_price),
        step: formatDecimal(step),
        ...(tick && { tick: formatDecimal(tick) }),
      });
  return markets;
}

/** Null: no limit. */
export interface ExposureLimits {
  readonly max_position: string | null;
  readonly max_open_notional: string | null;
}

export const exposureLimits =
  ({ byName }: Instruments) =>
  (name: string): ExposureLimits => {
    const { max_position, max_open_notional } = byName.get(name) ?? {};
    return {
      max_position: max_position ? formatDecimal(max_position) : null,
      max_open_notional: max_open_notional ? formatDecimal(max_open_notional) : null,
    };
  };
