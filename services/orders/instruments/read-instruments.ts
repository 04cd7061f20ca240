/**
 * From a file to instruments: all of it is good, or none of it is taken and every fault is told with its line.
 *
 * Every value is read as the text that stands there (YAML's failsafe schema), never as a number: 0.1 is a tenth.
 */
import { nearest } from "@todoke/http/nearest";
import { isMap, isScalar, LineCounter, type Node, parseDocument, visit, type YAMLMap } from "yaml";
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

const bounds = { fileBytes: 1024 * 1024, instruments: 10_000, ordersPerSecond: 1_000_000, toldMax: 100 };

/** 1 to 32 letters, digits and what stands between them in the names of markets. */
const instrumentName = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,31}$/;

type Refuse = (node: Node | null | undefined, sentence: string) => void;

/** A value of a map, the name it stands under, and the node that its line is taken from. */
interface Entry {
  readonly path: string;
  readonly value: unknown;
  readonly at: Node | null;
}

/** Throws `InstrumentsFaulty`. `file` is what the faults call it. */
export function readInstruments(text: string, file: string): Instruments {
  if (Buffer.byteLength(text) > bounds.fileBytes)
    throw new InstrumentsFaulty([`${file}:1: the file is larger than ${bounds.fileBytes} bytes`]);
  const lines = new LineCounter();
  const found: { line: number; sentence: string }[] = [];
  const tell = (offset: number, sentence: string) =>
    void found.push({ line: Math.max(1, lines.linePos(offset).line), sentence });
  const refuse: Refuse = (node, sentence) => tell(node?.range?.[0] ?? 0, sentence);
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    schema: "failsafe",
    stringKeys: true,
  });
  for (const { message, pos } of document.errors) tell(pos[0], `cannot be read: ${message}`);
  if (found.length === 0)
    visit(document, { Alias: (_, node) => refuse(node, `aliases (*${node.source}) are not taken: write it out`) });
  // What is no YAML would only be told a second time, in odder words.
  const read = found.length === 0 ? instrumentsIn({ path: "", value: document.contents, at: null }, refuse) : undefined;
  if (found.length === 0 && read) return read;
  const sentences = found.sort((a, b) => a.line - b.line).map(({ line, sentence }) => `${file}:${line}: ${sentence}`);
  const more = sentences.length - bounds.toldMax;
  throw new InstrumentsFaulty(
    more > 0 ? [...sentences.slice(0, bounds.toldMax), `${file}: and ${more} more`] : sentences,
  );
}

function instrumentsIn(root: Entry, refuse: Refuse): Instruments {
  const { limits, instruments } = fieldsOf(root, ["limits", "instruments"], refuse);
  const named = instruments ? entriesOf(instruments, refuse) : new Map<string, Entry>();
  if (named.size === 0) refuse(null, "the file should have one instrument at least, under instruments");
  if (named.size > bounds.instruments)
    refuse(instruments?.at, `instruments has ${named.size} entries; ${bounds.instruments} is the most`);
  const byName = new Map<string, Instrument>();
  for (const [name, entry] of named) {
    const instrument = instrumentOf(name, entry, refuse);
    if (instrument) byName.set(name, instrument);
  }
  const { orders_per_second } = limits ? fieldsOf(limits, ["orders_per_second"], refuse) : {};
  return { byName, ordersPerSecond: orders_per_second && perSecond(orders_per_second, refuse) };
}

const required = ["min_qty", "step", "max_qty", "max_notional"] as const;
const optional = ["tick", "reference_price"] as const;

function instrumentOf(name: string, entry: Entry, refuse: Refuse): Instrument | undefined {
  if (!instrumentName.test(name))
    refuse(entry.at, `${entry.path} should be named with letters, digits and . _ : / -, at most 32 characters`);
  const fields = fieldsOf(entry, [...required, ...optional], refuse);
  for (const field of required) if (!fields[field]) refuse(entry.at, `${entry.path} lacks ${field}`);
  const read: Partial<Record<(typeof required | typeof optional)[number], Decimal>> = {};
  for (const field of [...required, ...optional]) {
    const value = fields[field] && positive(fields[field], refuse);
    if (value) read[field] = value;
  }
  const { min_qty, step, max_qty, max_notional, ...more } = read;
  if (!min_qty || !step || !max_qty || !max_notional) return undefined;
  if (!isMultipleOf(min_qty, step))
    refuse(fields.min_qty?.at, `${entry.path}.min_qty should be a whole number of steps of ${textOfDecimal(step)}`);
  if (compareDecimals(min_qty, max_qty) > 0)
    refuse(fields.max_qty?.at, `${entry.path}.max_qty should not be less than min_qty (${textOfDecimal(min_qty)})`);
  return { name, min_qty, step, max_qty, max_notional, ...more };
}

function positive({ path, value, at }: Entry, refuse: Refuse): Decimal | undefined {
  const text = textIn(value);
  const decimal = text === undefined ? undefined : parseDecimal(text);
  if (decimal && isPositive(decimal)) return decimal;
  refuse(
    at,
    `${path} should be a decimal larger than 0${text === undefined ? "" : `, and is ${JSON.stringify(text)}`}`,
  );
  return undefined;
}

function perSecond({ path, value, at }: Entry, refuse: Refuse): number | undefined {
  const text = textIn(value) ?? "";
  const count = /^[1-9]\d{0,6}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= bounds.ordersPerSecond) return count;
  refuse(at, `${path} should be a whole number from 1 to ${bounds.ordersPerSecond}, and is ${JSON.stringify(text)}`);
  return undefined;
}

const textIn = (value: unknown): string | undefined =>
  isScalar(value) && typeof value.value === "string" ? value.value : undefined;

/** The values under known names; any other name is refused, with the one that was probably meant. */
function fieldsOf<Name extends string>(
  entry: Entry,
  known: readonly Name[],
  refuse: Refuse,
): Partial<Record<Name, Entry>> {
  const fields: Partial<Record<Name, Entry>> = {};
  for (const [name, value] of entriesOf(entry, refuse)) {
    const field = known.find((each) => each === name);
    if (field !== undefined) fields[field] = value;
    else {
      const meant = nearest(name, known);
      const hint = meant ? `; did you mean ${meant}?` : `, but ${known.join(", ")}`;
      refuse(value.at, `${value.path} is not known here${hint}`);
    }
  }
  return fields;
}

function entriesOf({ path, value, at }: Entry, refuse: Refuse): Map<string, Entry> {
  if (value === null || (isScalar(value) && value.value === "")) return new Map();
  if (!isMap(value)) {
    refuse(at, `${path || "the file"} should be a map: names, each with its value`);
    return new Map();
  }
  return new Map(
    (value as YAMLMap<Node, Node | null>).items.map(({ key, value: inner }) => {
      const name = String(isScalar(key) ? key.value : key);
      return [name, { path: path ? `${path}.${name}` : name, value: inner, at: key }];
    }),
  );
}
