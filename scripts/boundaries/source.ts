/** Parses a source file: its imports, its reads of process.env, and its strings. */
import { parseSync } from "vite";

export interface ImportMention {
  readonly line: number;
  /** The module as written: "node:fs", "./claim.ts", "@todoke/kernel/db". */
  readonly module: string;
  /** `import type` and the type `import("x").Y` load nothing. */
  readonly isType: boolean;
}

export interface ParsedSource {
  readonly imports: readonly ImportMention[];
  /** The lines that read process.env. */
  readonly environment: readonly number[];
  /** Strings and templates; a template without its expressions. */
  readonly texts: readonly Text[];
}

export interface Text {
  readonly line: number;
  readonly text: string;
}

/** A node of the syntax tree; which fields it has depends on its type. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly [field: string]: unknown;
}

/** Uses a parser, so that imports in comments and strings do not count. */
export function parseSource(path: string, text: string): ParsedSource {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`);
  const nodes = [...walk(program)];
  const lineNumber = (node: Node) => text.slice(0, node.start).split("\n").length;
  return {
    imports: nodes.flatMap((node) => {
      const module = importedModule(node);
      return module === undefined ? [] : [{ line: lineNumber(node), module, isType: isTypeOnly(node) }];
    }),
    environment: nodes.filter(readsEnvironment).map(lineNumber),
    texts: nodes.flatMap((node) => {
      const literal = stringValue(node);
      return literal === undefined ? [] : [{ line: lineNumber(node), text: literal }];
    }),
  };
}

function* walk(value: unknown): Generator<Node> {
  if (typeof value !== "object" || value === null) return;
  if (isNode(value)) yield value;
  for (const inner of Object.values(value)) yield* walk(inner);
}

function stringValue(node: Node): string | undefined {
  if (node.type === "Literal") return typeof node.value === "string" ? node.value : undefined;
  if (node.type !== "TemplateLiteral" || !Array.isArray(node.quasis)) return undefined;
  return node.quasis.map(({ value }: { value: { raw: string } }) => value.raw).join("?");
}

/** The lines of a migration without comments. */
export const sqlTexts = (sql: string): readonly Text[] =>
  sql.split("\n").map((text, index) => ({ line: index + 1, text: text.replace(/--.*$/, "") }));

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

/** `import … from "x"`, `export … from "x"`, `import("x")`, and the type `import("x").Y`: all keep the module in `source`. */
function importedModule(node: Node): string | undefined {
  const source = node.source;
  return isNode(source) && source.type === "Literal" && typeof source.value === "string" ? source.value : undefined;
}

const isTypeOnly = (node: Node): boolean =>
  node.importKind === "type" || node.exportKind === "type" || node.type === "TSImportType";

/** `process.env`, `const { env } = process`, and `import { env } from "node:process"`. */
function readsEnvironment(node: Node): boolean {
  if (node.type === "MemberExpression") return isNamed(node.object, "process") && isNamed(node.property, "env");
  if (node.type === "VariableDeclarator")
    return isNamed(node.init, "process") && JSON.stringify(node.id).includes('"env"');
  if (node.type === "ImportDeclaration") {
    return importedModule(node) === "node:process" && JSON.stringify(node.specifiers).includes('"env"');
  }
  return false;
}

function isNamed(node: unknown, name: string): boolean {
  return isNode(node) && (node.name === name || node.value === name);
}
