/**
 * Finds the first error in a JSON text and describes it so that a caller can fix it.
 *
 * This is the slow and exact reader. strict-json.ts uses it only if JSON.parse rejected the text, or if its quick look
 * found something suspicious. Plain JSON never gets here.
 */
import { isLongInteger, lossOf } from "./exact-number.ts";
import { type Path, readablePath } from "./field-path.ts";
import { quoted } from "./printable.ts";
import { storageError } from "./storable-text.ts";

export const depthMax = 32; // Deeper than any contract here, shallow enough for every recursion that follows.
export const itemsMax = 10_000; // Fields and elements together: more than any honest body has, and cheap to read.

export interface JsonError {
  /** False if the text is not JSON; true if it is JSON with a value that could not be stored unchanged. */
  readonly wellFormed: boolean;
  /** "body.items[2].price" */
  readonly field: string;
  readonly detail: string;
}

export interface ReadOptions {
  /** Accept integers that a double would round: the caller passes them on as text. */
  readonly longIntegers?: boolean;
}

export function findJsonError(text: string, options: ReadOptions = {}): JsonError | undefined {
  try {
    new Reader(text, options).document();
    return undefined;
  } catch (error) {
    if (error instanceof Found) return error.error;
    throw error;
  }
}

/** Leaves the recursion at the first error; caught in this file. */
class Found extends Error {
  readonly error: JsonError;
  constructor(error: JsonError) {
    super(error.detail);
    this.error = error;
  }
}

const space = /[ \t\n\r]*/y;
const numberLiteral = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const wordLiteral = /true|false|null/y;

class Reader {
  readonly #text: string;
  readonly #options: ReadOptions;
  readonly #path: Path = [];
  #at = 0;
  #items = 0;

  constructor(text: string, options: ReadOptions) {
    this.#text = text;
    this.#options = options;
  }

  document(): void {
    if (this.#text.startsWith("\ufeff")) this.#malformed("starts with a byte order mark; send the text without it");
    if (this.#peek() === undefined) this.#malformed("is empty");
    this.#value();
    if (this.#peek() !== undefined) this.#malformed(`is followed by something else ${this.#where()}`);
  }

  #value(): void {
    const next = this.#peek();
    if (next === "{") this.#object();
    else if (next === "[") this.#array();
    else if (next === '"') this.#string();
    else if (this.#match(wordLiteral) === undefined) this.#number();
  }

  #object(): void {
    const seen = new Set<string>();
    this.#open();
    while (this.#peek() !== "}") {
      if (seen.size > 0) this.#take(",");
      if (this.#peek() !== '"') this.#expected("a field name in double quotes");
      const key = this.#string();
      this.#path.push(key);
      if (seen.has(key)) this.#rejected("is given twice");
      seen.add(key);
      this.#take(":");
      // These names can pollute prototypes when a program copies the object.
      if (key === "__proto__" || (key === "constructor" && this.#peek() === "{")) this.#rejected("is not a field name");
      this.#item();
    }
    this.#at++;
  }

  #array(): void {
    this.#open();
    for (let index = 0; this.#peek() !== "]"; index++) {
      if (index > 0) this.#take(",");
      this.#path.push(index);
      this.#item();
    }
    this.#at++;
  }

  #open(): void {
    if (this.#path.length >= depthMax) this.#rejected(`is nested deeper than ${depthMax} levels`);
    this.#at++;
  }

  /** The value that #path now names. */
  #item(): void {
    if (++this.#items > itemsMax) this.#rejected(`is past the ${itemsMax} fields and elements that a body may have`);
    this.#value();
    this.#path.pop();
  }

  #string(): string {
    const literal = this.#stringLiteral();
    const value = literal.includes("\\") ? parsedOrUndefined(literal) : literal.slice(1, -1);
    if (value === undefined) return this.#malformed(`has a broken escape in the string that starts ${this.#where()}`);
    this.#at += literal.length;
    const error = storageError(value);
    if (error) this.#rejected(error);
    return value;
  }

  /** From quote to quote. JSON.parse interprets escapes; here they only must not end the string. */
  #stringLiteral(): string {
    for (let end = this.#at + 1; ; end++) {
      const code = this.#text.charCodeAt(end);
      if (Number.isNaN(code)) this.#malformed(`has no end to the string that starts ${this.#where()}`);
      if (code < 0x20) this.#malformed(`has an unescaped control character in the string that starts ${this.#where()}`);
      if (code === 0x22) return this.#text.slice(this.#at, end + 1);
      if (code === 0x5c) end++;
    }
  }

  #number(): void {
    const literal = this.#match(numberLiteral) ?? this.#expected("a value");
    if (this.#options.longIntegers && isLongInteger(literal)) return;
    const loss = lossOf(literal);
    if (loss) this.#rejected(loss);
  }

  /** The next character that is not white space; undefined at the end. */
  #peek(): string | undefined {
    if (this.#text.charCodeAt(this.#at) <= 0x20) this.#match(space);
    return this.#text[this.#at];
  }

  #take(sign: string): void {
    if (this.#peek() !== sign) this.#expected(`"${sign}"`);
    this.#at++;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #expected(what: string): never {
    const next = this.#peek();
    if (next === undefined) return this.#malformed(`ends where ${what} is expected`);
    return this.#malformed(`has ${quoted(next)} where ${what} is expected ${this.#where()}`);
  }

  #where(): string {
    const lines = this.#text.slice(0, this.#at).split("\n");
    return `(line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1})`;
  }

  #malformed(detail: string): never {
    throw new Found({ wellFormed: false, field: readablePath("body", this.#path), detail });
  }

  #rejected(detail: string): never {
    throw new Found({ wellFormed: true, field: readablePath("body", this.#path), detail });
  }
}

function parsedOrUndefined(literal: string): string | undefined {
  try {
    return JSON.parse(literal);
  } catch {
    return undefined;
  }
}
