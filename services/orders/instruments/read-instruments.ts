/**
 * From a file to instruments: all of it is good, or none of it is taken and every fault is told with its line.
 *
 * Every value is read as the text that stands there, never as a number: 0.1 is a tenth.
 */
import { entriesOf, fieldsOf, openYaml, readOf, type Spot } from "@todoke/http/spots";
import { compareDecimals, type Decimal, isMultipleOf, isPositive, parseDecimal, textOfDecimal } from "../decimal.ts";
import type { Instrument, Instruments } from "./types.ts";

/** What is wrong with a file of instruments: "instruments.yaml:12: instruments.BTC-USD.step should be …", a sentence each. */
export class InstrumentsFaulty extends Error {
  override readonly name = "InstrumentsFaulty";
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join("\n"));
    this.faults = faults;
  }
}

const bounds = { fileBytes: 1024 * 1024, instruments: 10_000, ordersPerSecond: 1_000_000 };

/** 1 to 32 letters, digits and what stands between them in the names of markets. */
const instrumentName = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,31}$/;

/** Throws `InstrumentsFaulty`. `file` is what the faults call it. */
export function readInstruments(text: string, file: string): Instruments {
  if (Buffer.byteLength(text) > bounds.fileBytes)
    throw new InstrumentsFaulty([`${file}:1: the file is larger than ${bounds.fileBytes} bytes`]);
  const { root, faults } = openYaml({ text, file, as: "texts" });
  // What is no YAML would only be told a second time, in odder words.
  const read = faults.all().length === 0 ? instrumentsIn(root) : undefined;
  if (!read || faults.all().length > 0) throw new InstrumentsFaulty(faults.all());
  return read;
}

function instrumentsIn(root: Spot): Instruments {
  const { limits, instruments } = fieldsOf(root, ["limits", "instruments"]);
  const named = (instruments && entriesOf(instruments)) ?? new Map<string, Spot>();
  if (named.size === 0) root.refuse("should have one instrument at least, under instruments");
  if (named.size > bounds.instruments)
    instruments?.refuse(`has ${named.size} entries; ${bounds.instruments} is the most`);
  const byName = new Map<string, Instrument>();
  for (const [name, spot] of named) {
    const instrument = instrumentOf(name, spot);
    if (instrument) byName.set(name, instrument);
  }
  const { orders_per_second } = limits ? fieldsOf(limits, ["orders_per_second"]) : {};
  return { byName, ordersPerSecond: orders_per_second && perSecond(orders_per_second) };
}

const required = ["min_qty", "step", "max_qty", "max_notional"] as const;
const optional = ["tick", "reference_price"] as const;

function instrumentOf(name: string, spot: Spot): Instrument | undefined {
  if (!instrumentName.test(name))
    spot.refuse("should be named with letters, digits and . _ : / -, at most 32 characters");
  const fields = fieldsOf(spot, [...required, ...optional]);
  for (const field of required) if (!fields[field]) spot.refuse(`lacks ${field}`);
  const read: Partial<Record<(typeof required | typeof optional)[number], Decimal>> = {};
  for (const field of [...required, ...optional]) {
    const value = fields[field] && positive(fields[field]);
    if (value) read[field] = value;
  }
  const { min_qty, step, max_qty, max_notional, ...more } = read;
  if (!min_qty || !step || !max_qty || !max_notional) return undefined;
  if (!isMultipleOf(min_qty, step))
    fields.min_qty?.refuse(`should be a whole number of steps of ${textOfDecimal(step)}`);
  if (compareDecimals(min_qty, max_qty) > 0)
    fields.max_qty?.refuse(`should not be less than min_qty (${textOfDecimal(min_qty)})`);
  return { name, min_qty, step, max_qty, max_notional, ...more };
}

function positive(spot: Spot): Decimal | undefined {
  const read = (text: string) => {
    const decimal = parseDecimal(text);
    return decimal && isPositive(decimal) ? decimal : undefined;
  };
  return readOf(spot, { read, what: "a decimal larger than 0" });
}

function perSecond(spot: Spot): number | undefined {
  const max = bounds.ordersPerSecond;
  const read = (text: string) => (/^[1-9]\d{0,6}$/.test(text) && Number(text) <= max ? Number(text) : undefined);
  return readOf(spot, { read, what: `a whole number from 1 to ${max}` });
}
