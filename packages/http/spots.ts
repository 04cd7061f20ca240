/**
 * Values in a YAML file (or JSON, which is YAML), each with the place where it stands.
 *
 * Whoever reads a value says what it should be; what it is not becomes a fault with file and line, and reading goes on, so
 * that a file is mended once. Aliases and tags are refused: a small file stays small, and a value is what it looks like.
 */

import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from "yaml";
import { nearest } from "./nearest.ts";

export interface Spot {
  /** "modes.ranked.skill.window[1].after"; empty for the whole file. */
  readonly path: string;
  readonly node: Node | null;
  /** Says what is wrong with it: "should be a whole number". */
  refuse(why: string): void;
  /** What is inside it: under a name, or in a list. `from` is where its own line is. */
  inside(name: string, node: Node | null, from: number | undefined): Spot;
}

export interface Faults {
  add(offset: number, sentence: string): void;
  /** By line, each once. */
  all(): readonly string[];
}

// A file can be wrong in more places than anybody reads about at once.
const toldMax = 100;

function faultsOf(file: string, lines: LineCounter): Faults {
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
      const rest = once.length - toldMax;
      return rest > 0 ? [...once.slice(0, toldMax), `${file}: and ${rest} more`] : once;
    },
  };
}

export interface YamlFile {
  readonly text: string;
  /** What the faults call it. */
  readonly file: string;
  /** "texts": nothing is read as a number or a boolean, and every value is the text that stands there: 0.1 is a tenth. */
  readonly as?: "values" | "texts";
}

/** The whole file as a spot, and what is wrong with it so far: all that is no YAML, or YAML of a kind not taken here. */
export function openYaml({ text, file, as = "values" }: YamlFile): { readonly root: Spot; readonly faults: Faults } {
  const lines = new LineCounter();
  const faults = faultsOf(file, lines);
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
  return { root: spotOf({ path: "", node: document.contents, from: 0, faults }), faults };
}

/** Where a parser points to the white space before what it means, what it means. */
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

function spotOf({ path, node, from, faults }: Placed): Spot {
  return {
    path,
    node,
    refuse: (why) => faults.add(from, path ? `${path} ${why}` : `the file ${why}`),
    inside: (name, inner, at) =>
      spotOf({
        path: name.startsWith("[") ? path + name : path ? `${path}.${name}` : name,
        node: inner,
        from: (isScalar(inner) && inner.value !== null ? inner.range?.[0] : at) ?? from,
        faults,
      }),
  };
}

/** Nothing is written there: the name alone, or nothing at all. */
export const isBlank = ({ node }: Spot): boolean =>
  node === null || (isScalar(node) && (node.value === null || (node.type === "PLAIN" && node.source === "")));

/** The values of a map by their names, in the order of the file; undefined where it is none. */
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

/** The values under known names; any other name is refused, with the one that was probably meant. */
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
  /** A word that is taken as well: "any" is Infinity. */
  readonly any?: "any";
}

/** A whole number within the bounds; undefined, and told, where it is none. */
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

/** What a text is read as; undefined, and told, where it cannot be. */
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
