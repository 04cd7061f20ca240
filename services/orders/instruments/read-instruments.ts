/**
 * Parses a file of instruments. With an error the whole file is rejected, and every error is reported with its line.
 *
 * Values are read as text, never as floating point numbers: 0.1 is a tenth.
 */
import { openYaml, readAs, readEntries, readFields, type YamlValue } from "@todoke/http/yaml-values";
import {
  compareDecimals,
  type Decimal,
  formatDecimal,
  isMultipleOf,
  isPositive,
  parseDecimal,
} from "../order/decimal.ts";
import type { Instrument, Instruments } from "./types.ts";

/** The errors of a file, each a sentence: "instruments.yaml:12: instruments.BTC-USD.step should be …". */
export class InstrumentsError extends Error {
  override readonly name = "InstrumentsError";
  readonly errors: readonly string[];

  constructor(errors: readonly string[]) {
    super(errors.join("\n"));
    this.errors = errors;
  }
}

const bounds = { fileBytes: 1024 * 1024, instruments: 10_000, ordersPerSecond: 1_000_000 };

/** 1 to 32 letters, digits and separators. */
const instrumentName = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,31}$/;

/** Throws `InstrumentsError`. `file` is the name in the errors. */
export function readInstruments(text: string, file: string): Instruments {
  if (Buffer.byteLength(text) > bounds.fileBytes)
    throw new InstrumentsError([`${file}:1: the file is larger than ${bounds.fileBytes} bytes`]);
  const { root, errors } = openYaml({ text, file, as: "texts" });
  // Invalid YAML is reported once, by the parser.
  const read = errors.all().length === 0 ? parseInstruments(root) : undefined;
  if (!read || errors.all().length > 0) throw new InstrumentsError(errors.all());
  return read;
}

function parseInstruments(root: YamlValue): Instruments {
  const { limits, instruments } = readFields(root, ["limits", "instruments"]);
  const named = (instruments && readEntries(instruments)) ?? new Map<string, YamlValue>();
  if (named.size === 0) root.reject("should have at least one instrument, under instruments");
  if (named.size > bounds.instruments)
    instruments?.reject(`has ${named.size} entries; the limit is ${bounds.instruments}`);
  const byName = new Map<string, Instrument>();
  for (const [name, value] of named) {
    const instrument = parseInstrument(name, value);
    if (instrument) byName.set(name, instrument);
  }
  const { orders_per_second } = limits ? readFields(limits, ["orders_per_second"]) : {};
  return { byName, ordersPerSecond: orders_per_second && parsePerSecond(orders_per_second) };
}

const required = ["min_qty", "step", "max_qty", "max_notional"] as const;
const optional = ["tick", "reference_price", "max_position", "max_open_notional"] as const;

function parseInstrument(name: string, value: YamlValue): Instrument | undefined {
  if (!instrumentName.test(name))
    value.reject("should be named with letters, digits and . _ : / -, at most 32 characters");
  const fields = readFields(value, [...required, ...optional]);
  for (const field of required) if (!fields[field]) value.reject(`lacks ${field}`);
  const read: Partial<Record<(typeof required | typeof optional)[number], Decimal>> = {};
  for (const field of [...required, ...optional]) {
    const parsed = fields[field] && parsePositive(fields[field]);
    if (parsed) read[field] = parsed;
  }
  const { min_qty, step, max_qty, max_notional, ...more } = read;
  if (!min_qty || !step || !max_qty || !max_notional) return undefined;
  if (!isMultipleOf(min_qty, step)) fields.min_qty?.reject(`should be a multiple of ${formatDecimal(step)}`);
  if (compareDecimals(min_qty, max_qty) > 0)
    fields.max_qty?.reject(`should not be less than min_qty (${formatDecimal(min_qty)})`);
  return { name, min_qty, step, max_qty, max_notional, ...more };
}

function parsePositive(value: YamlValue): Decimal | undefined {
  const read = (text: string) => {
    const decimal = parseDecimal(text);
    return decimal && isPositive(decimal) ? decimal : undefined;
  };
  return readAs(value, { read, what: "a decimal larger than 0" });
}

function parsePerSecond(value: YamlValue): number | undefined {
  const max = bounds.ordersPerSecond;
  const read = (text: string) => (/^[1-9]\d{0,6}$/.test(text) && Number(text) <= max ? Number(text) : undefined);
  return readAs(value, { read, what: `a whole number from 1 to ${max}` });
}
