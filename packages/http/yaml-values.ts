/**
 * The values of a YAML file (or JSON, which is YAML), each with its line.
 *
 * The reader of a value states what it should be; anything else becomes an error with file and line, and reading continues, so that all
 * errors can be fixed at once. Aliases and tags are rejected: a small file stays small, and a value is what it looks like.
 */

import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from "yaml";
import { closestMatch } from "./closest-match.ts";

export interface YamlValue {
  /** "modes.ranked.skill.window[1].after"; empty for the whole file. */
  readonly path: string;
  readonly node: Node | null;
  /** Adds an error about it: "should be a whole number". */
  reject(why: string): void;
  /** A value inside it: under a name, or in a list. `from` is the offset of its line. */
  inside(name: string, node: Node | null, from: number | undefined): YamlValue;
}

export interface YamlErrors {
  add(offset: number, sentence: string): void;
  /** Sorted by line, without duplicates. */
  all(): readonly string[];
}

// More errors than this are only counted.
const errorsMax = 100;

function createErrors(file: string, lines: LineCounter): YamlErrors {
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
export function openYaml({ text, file, as = "values" }: YamlFile): {
  readonly root: YamlValue;
  readonly errors: YamlErrors;
} {
  const lines = new LineCounter();
  const errors = createErrors(file, lines);
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    schema: as === "texts" ? "failsafe" : "core",
    stringKeys: true,
    logLevel: "error",
  });
  for (const { code, message, pos } of document.errors)
    errors.add(
      firstCharacter(text, pos[0]),
      code === "RESOURCE_EXHAUSTION" ? "is nested too deeply" : `cannot be read: ${message}`,
    );
  if (document.errors.length === 0) {
    visit(document, {
      Node(_, node) {
        if (isAlias(node)) errors.add(node.range?.[0] ?? 0, `aliases (*${node.source}) are not accepted: write it out`);
        else if (node.tag)
          errors.add(node.range?.[0] ?? 0, `tags (${node.tag}) are not accepted: write the value alone`);
      },
    });
  }
  return { root: createValue({ path: "", node: document.contents, from: 0, errors }), errors };
}

/** The parser may point to white space before the error: skip it. */
function firstCharacter(text: string, from: number): number {
  const ahead = text.slice(from).search(/\S/);
  return ahead < 0 ? from : from + ahead;
}

interface ValueOptions {
  readonly path: string;
  readonly node: Node | null;
  readonly from: number;
  readonly errors: YamlErrors;
}

function createValue({ path, node, from, errors }: ValueOptions): YamlValue {
  return {
    path,
    node,
    reject: (why) => errors.add(from, path ? `${path} ${why}` : `the file ${why}`),
    inside: (name, inner, at) =>
      createValue({
        path: name.startsWith("[") ? path + name : path ? `${path}.${name}` : name,
        node: inner,
        from: (isScalar(inner) && inner.value !== null ? inner.range?.[0] : at) ?? from,
        errors,
      }),
  };
}

/** No value: the name alone, or nothing. */
export const isBlank = ({ node }: YamlValue): boolean =>
  node === null || (isScalar(node) && (node.value === null || (node.type === "PLAIN" && node.source === "")));

/** The values of a map by name, in the order of the file; undefined if it is not a map. */
export function readEntries(value: YamlValue): Map<string, YamlValue> | undefined {
  if (isBlank(value)) return new Map();
  if (!isMap(value.node)) {
    value.reject("should be a map: names, each with its value");
    return undefined;
  }
  return new Map(
    value.node.items.map(({ key, value: inner }) => {
      const name = String(isScalar(key) ? key.value : key);
      const from = isNode(key) ? key.range?.[0] : undefined;
      return [name, value.inside(name, isNode(inner) ? inner : null, from)];
    }),
  );
}

/** The values under known names; any other name is an error, with a suggestion. */
export function readFields<Name extends string>(
  value: YamlValue,
  known: readonly Name[],
): Partial<Record<Name, YamlValue>> {
  const fields: Partial<Record<Name, YamlValue>> = {};
  for (const [name, inner] of readEntries(value) ?? []) {
    const field = known.find((each) => each === name);
    if (field !== undefined) {
      fields[field] = inner;
      continue;
    }
    const meant = closestMatch(name, known);
    inner.reject(meant ? `is not known here; did you mean ${meant}?` : `is not known here, but ${known.join(", ")}`);
  }
  return fields;
}

export function readItems(
  value: YamlValue,
  { max, of }: { readonly max: number; readonly of: string },
): readonly YamlValue[] {
  if (!isSeq(value.node) || value.node.items.length < 1 || value.node.items.length > max) {
    value.reject(`should be a list of 1 to ${max} ${of}`);
    return [];
  }
  return value.node.items.map((item, at) =>
    value.inside(`[${at}]`, isNode(item) ? item : null, isNode(item) ? item.range?.[0] : undefined),
  );
}

export interface Range {
  readonly min: number;
  readonly max: number;
  /** Also accepted: "any" is Infinity. */
  readonly any?: "any";
}

/** A whole number within the bounds; otherwise undefined and an error. */
export function readInteger(value: YamlValue, { min, max, any }: Range): number | undefined {
  const found = isScalar(value.node) ? value.node.value : undefined;
  if (any !== undefined && found === any) return Number.POSITIVE_INFINITY;
  if (typeof found === "number" && Number.isInteger(found) && found >= min && found <= max) return found;
  value.reject(`should be a whole number from ${min} to ${max}${any ? `, or ${any}` : ""}${foundIn(value)}`);
  return undefined;
}

export function readText(value: YamlValue, { pattern, what }: { readonly pattern: RegExp; readonly what: string }) {
  return readAs(value, { read: (text) => (pattern.test(text) ? text : undefined), what });
}

/** The result of `read`; otherwise undefined and an error. */
export function readAs<Result>(
  value: YamlValue,
  { read, what }: { readonly read: (text: string) => Result | undefined; readonly what: string },
): Result | undefined {
  const text = isScalar(value.node) ? value.node.value : undefined;
  const result = typeof text === "string" ? read(text) : undefined;
  if (result === undefined) value.reject(`should be ${what}${foundIn(value)}`);
  return result;
}

function foundIn({ node }: YamlValue): string {
  if (!isScalar(node) || node.value === null) return "";
  const text = typeof node.value === "string" ? JSON.stringify(node.value) : String(node.value);
  return `, and is ${text.length > 40 ? `${text.slice(0, 40)}…` : text}`;
}
