/**
 * The named parts of an OpenAPI document. A schema with a `title` is the component of that name, wherever it is used; the
 * routes keep their whole schemas, so that validators and serializers are compiled as if it had no name.
 */
import { isDeepStrictEqual } from "node:util";
import type { ProblemKind } from "@todoke/kernel/problem";

type Node = Record<string, unknown>;

/** Keywords with data. A `title` in there is no name. */
const dataKeywords = new Set(["const", "default", "enum", "example", "examples"]);

/** Replaces every named schema in a JSON value, the innermost first. */
function replaceNamed(value: unknown, replace: (name: string, schema: Node) => unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => replaceNamed(each, replace));
  if (typeof value !== "object" || value === null) return value;
  const copy: Node = Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, dataKeywords.has(key) ? each : replaceNamed(each, replace)]),
  );
  // A property of that name has a schema, not a text.
  return typeof copy.title === "string" ? replace(copy.title, copy) : copy;
}

/** Names of parameters that many operations have. */
const sharedParameters = new Set(["IdempotencyKey", "OptionalIdempotencyKey", "PageCursor", "PageLimit"]);

interface Parameter {
  readonly schema: { readonly title?: string };
}

/** A named schema with another description in one place. The document has it beside the `$ref`. */
export const withDescription = <Schema extends object>(schema: Schema, description: string): Schema => ({
  ...schema,
  description,
  // Not a keyword of ours: validators reject those.
  $comment: (schema as { description?: string }).description,
});

export class Components {
  readonly #schemas = new Map<string, unknown>();
  readonly #parameters = new Map<string, unknown>();
  readonly #responses = new Map<string, unknown>();

  /** Adds the named schemas of a route. Throws if a name has another schema already. */
  collect(schema: unknown): void {
    replaceNamed(schema, (name, named) => {
      if (sharedParameters.has(name)) return named;
      const { title: _, description, $comment = description, ...rest } = named;
      keep(this.#schemas, name, { ...rest, ...($comment !== undefined && { description: $comment }) });
      return schemaRef(name, named);
    });
  }

  /** A part of the document with a `$ref` for every named schema. */
  refer<Part>(part: Part): Part {
    return replaceNamed(part, schemaRef) as Part;
  }

  /** A `$ref` for a parameter that many operations have; any other parameter as it is. */
  parameter(parameter: Parameter): unknown {
    const { title, ...schema } = parameter.schema;
    if (title === undefined || !sharedParameters.has(title)) return parameter;
    keep(this.#parameters, title, { ...parameter, schema });
    return refTo("parameters", title);
  }

  /** A `$ref` for a response. */
  response(name: string, response: unknown): unknown {
    keep(this.#responses, name, response);
    return refTo("responses", name);
  }

  /** A `$ref` for a Problem with the code of this kind. */
  problem({ code, status, title }: ProblemKind): unknown {
    const example = {
      type: `https://todoke.dev/problems/${code}`,
      ...{ title, status, code, detail: title, instance: "01a1df39-ea33-7000-ba4d-967d2e0fabc4" },
    };
    keep(this.#schemas, problemName(code), {
      allOf: [
        refTo("schemas", "Problem"),
        { type: "object", properties: { code: { const: code }, status: { const: status } } },
      ],
      description: `${title}.`,
      examples: [example],
    });
    return refTo("schemas", problemName(code));
  }

  /** Everything that has a name, in alphabetical order. */
  all() {
    return {
      schemas: sorted(this.#schemas),
      parameters: sorted(this.#parameters),
      responses: this.refer(sorted(this.#responses)),
    };
  }
}

function keep(components: Map<string, unknown>, name: string, component: unknown): void {
  const known = components.get(name);
  if (known !== undefined && !isDeepStrictEqual(known, component)) {
    throw new Error(`two different components are named ${name}: give one of them another title`);
  }
  components.set(name, component);
}

const sorted = (components: ReadonlyMap<string, unknown>) =>
  Object.fromEntries([...components].toSorted(([a], [b]) => (a < b ? -1 : 1)));

/** The codes in capitals are the gateway's; one of them is another service's in small letters. */
export const problemName = (code: string): string =>
  `${/^[A-Z]/.test(code) ? "Gateway" : ""}${code.toLowerCase().replace(/(?:^|[-_])(\w)/g, (_, letter: string) => letter.toUpperCase())}Problem`;

const refTo = (kind: "parameters" | "responses" | "schemas", name: string) => ({
  $ref: `#/components/${kind}/${name}`,
});

/** With the description of this place, if it has one of its own. */
const schemaRef = (name: string, { description, $comment = description }: Node) => ({
  ...refTo("schemas", name),
  ...(description !== undefined && description !== $comment && { description }),
});
