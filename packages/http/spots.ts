/**
 * The values of a YAML file (or JSON, which is YAML), each with its line.
 *
 * The reader of a value states what it should be; anything else becomes an error with file and line, and reading continues, so that all
 * errors can be fixed at once. Aliases and tags are rejected: a small file stays small, and a value is what it looks like.
 */

import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from "yaml";
import { nearest } from "./nearest.ts";

export interface Spot {
  /** "modes.ranked.skill.window[1].after"; empty for the whole file. */
  readonly path: string;
  readonly node: Node | null;
  /** Adds an error about it: "should be a whole number". */
  refuse(why: string): void;
  /** A value inside it: under a name, or in a list. `from` is the offset of its line. */
  inside(name: string, node: Node | null, from: number | undefined): Spot;
}

export interface Faults {
  add(offset: number, sentence: string): void;
  /** Sorted by line, without duplicates. */
  all(): readonly string[];
}

// More errors than this are only counted.
const errorsMax = 100;

function createErrors(file: string, lines: LineCounter): Faults {
  const found: { line: number; sentence: string }[] = [];
  return {
    add(offset, sentence) {
      found.push({ line: Math.max(1, lines.linePos(offset).line), sentence });
    },
    all() {
      const sentences = found
        .sort((a, b) => a.line - b.line)
        .map(({ line, sentence }) => `${file}:${line}: ${sentence}`);
      const once = [...new Set(sentences)];
      const rest = once.length - errorsMax;
      return rest > 0 ? [...once.slice(0, errorsMax), `${file}: and ${rest} more`] : once;
    },
  };
}

export interface YamlFile {
  readonly text: string;
  /** Its name in errors. */
  readonly file: string;
  /** "texts": every value is its text, and nothing is read as a number or a boolean, so that 0.1 stays exact. */
  readonly as?: "values" | "texts";
}

/** The root value of the file, and its errors so far: invalid YAML, aliases and tags. */
export function openYaml({ text, file, as = "values" }: YamlFile): { readonly root: Spot; readonly faults: Faults } {
  const lines = new LineCounter();
  const faults = createErrors(file, lines);
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    schema: as === "texts" ? "failsafe" : "core",
    stringKeys: true,
    logLevel: "error",
  });
  for (const { code, message, pos } of document.errors)
    faults.add(
      firstCharacter(text, pos[0]),
      code === "RESOURCE_EXHAUSTION" ? "is nested too deeply" : `cannot be read: ${message}`,
    );
  if (document.errors.length === 0) {
    visit(document, {
      Node(_, node) {
        if (isAlias(node)) faults.add(node.range?.[0] ?? 0, `aliases (*${node.source}) are not taken: write it out`);
        else if (node.tag) faults.add(node.range?.[0] ?? 0, `tags (${node.tag}) are not taken: write the value alone`);
      },
    });
  }
  return { root: createValue({ path: "", node: document.contents, from: 0, faults }), faults };
}

/** The parser may point to white space before the error: skip it. */
function firstCharacter(text: string, from: number): number {
  const ahead = text.slice(from).search(/\S/);
  return ahead < 0 ? from : from + ahead;
}

interface Placed {
  readonly path: string;
  readonly node: Node | null;
  readonly from: number;
  readonly faults: Faults;
}

function createValue({ path, node, from, faults }: Placed): Spot {
  return {
    path,
    node,
    refuse: (why) => faults.add(from, path ? `${path} ${why}` : `the file ${why}`),
    inside: (name, inner, at) =>
      createValue({
        path: name.startsWith("[") ? path + name : path ? `${path}.${name}` : name,
        node: inner,
        from: (isScalar(inner) && inner.value !== null ? inner.range?.[0] : at) ?? from,
        faults,
      }),
  };
}

/** No value: the name alone, or nothing. */
export const isBlank = ({ node }: Spot): boolean =>
  node === null || (isScalar(node) && (node.value === null || (node.type === "PLAIN" && node.source === "")));

/** The values of a map by name, in the order of the file; undefined if it is not a map. */
export function entriesOf(spot: Spot): Map<string, Spot> | undefined {
  if (isBlank(spot)) return new Map();
  if (!isMap(spot.node)) {
    spot.refuse("should be a map: names, each with its value");
    return undefined;
  }
  return new Map(
    spot.node.items.map(({ key, value }) => {
      const name = String(isScalar(key) ? key.value : key);
      const from = isNode(key) ? key.range?.[0] : undefined;
      return [name, spot.inside(name, isNode(value) ? value : null, from)];
    }),
  );
}

/** The values under known names; any other name is an error, with a suggestion. */
export function fieldsOf<Name extends string>(spot: Spot, known: readonly Name[]): Partial<Record<Name, Spot>> {
  const fields: Partial<Record<Name, Spot>> = {};
  for (const [name, value] of entriesOf(spot) ?? []) {
    const field = known.find((each) => each === name);
    if (field !== undefined) {
      fields[field] = value;
      continue;
    }
    const meant = nearest(name, known);
    value.refuse(meant ? `is not known here; did you mean ${meant}?` : `is not known here, but ${known.join(", ")}`);
  }
  return fields;
}

export function itemsOf(spot: Spot, { max, of }: { readonly max: number; readonly of: string }): readonly Spot[] {
  if (!isSeq(spot.node) || spot.node.items.length < 1 || spot.node.items.length > max) {
    spot.refuse(`should be a list of 1 to ${max} ${of}`);
    return [];
  }
  return spot.node.items.map((item, at) =>
    spot.inside(`[${at}]`, isNode(item) ? item : null, isNode(item) ? item.range?.[0] : undefined),
  );
}

export interface Range {
  readonly min: number;
  readonly max: number;
  /** Also accepted: "any" is Infinity. */
  readonly any?: "any";
}

/** A whole number within the bounds; otherwise undefined and an error. */
export function wholeNumberOf(spot: Spot, { min, max, any }: Range): number | undefined {
  const value = isScalar(spot.node) ? spot.node.value : undefined;
  if (any !== undefined && value === any) return Number.POSITIVE_INFINITY;
  if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return value;
  spot.refuse(`should be a whole number from ${min} to ${max}${any ? `, or ${any}` : ""}${foundIn(spot)}`);
  return undefined;
}

export function textOf(spot: Spot, { pattern, what }: { readonly pattern: RegExp; readonly what: string }) {
  return readOf(spot, { read: (text) => (pattern.test(text) ? text : undefined), what });
}

/** The result of `read`; otherwise undefined and an error. */
export function readOf<Value>(
  spot: Spot,
  { read, what }: { readonly read: (text: string) => Value | undefined; readonly what: string },
): Value | undefined {
  const text = isScalar(spot.node) ? spot.node.value : undefined;
  const value = typeof text === "string" ? read(text) : undefined;
  if (value === undefined) spot.refuse(`should be ${what}${foundIn(spot)}`);
  return value;
}

function foundIn({ node }: Spot): string {
  if (!isScalar(node) || node.value === null) return "";
  const text = typeof node.value === "string" ? JSON.stringify(node.value) : String(node.value);
  return `, and is ${text.length > 40 ? `${text.slice(0, 40)}…` : text}`;
}
