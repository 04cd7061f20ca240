/** Errors of JSON Schema in words for readers who do not know JSON Schema. */
import type { FastifySchemaValidationError } from "fastify";
import { quoted } from "./printable.ts";

/** As Ajv reports it with `verbose`: with the value and the part of the schema. */
export interface SchemaError extends FastifySchemaValidationError {
  readonly schema?: unknown;
  readonly data?: unknown;
}

/** Follows the name of the field: "body.amount" + "must be 1 or more". */
export function sentenceOf(error: SchemaError): string {
  return sentences[error.keyword]?.(error) ?? "is not accepted";
}

const sentences: Record<string, (error: SchemaError) => string> = {
  required: () => "is missing",
  additionalProperties: () => "is not a field that is known here",
  type: (error) => `must be ${typeNamed(error.params.type)}, not ${kindOf(error)}`,
  enum: ({ schema }) => oneOf(schema as readonly unknown[]),
  const: ({ params }) => `must be ${shown(params.allowedValue)}`,
  anyOf: ({ schema }) => alternatives(schema),
  oneOf: ({ schema }) => alternatives(schema),
  minLength: ({ params }) =>
    params.limit === 1 ? "must not be empty" : `must have ${params.limit} characters or more`,
  maxLength: ({ params }) => `must have ${params.limit} characters or fewer`,
  minItems: ({ params }) => (params.limit === 1 ? "must not be empty" : `must have ${params.limit} elements or more`),
  maxItems: ({ params }) => `must have ${params.limit} elements or fewer`,
  minProperties: ({ params }) => `must have ${params.limit} fields or more`,
  maxProperties: ({ params }) => `must have ${params.limit} fields or fewer`,
  uniqueItems: () => "must not have the same element twice",
  minimum: ({ params }) => `must be ${params.limit} or more`,
  maximum: ({ params }) => `must be ${params.limit} or less`,
  exclusiveMinimum: ({ params }) => `must be more than ${params.limit}`,
  exclusiveMaximum: ({ params }) => `must be less than ${params.limit}`,
  multipleOf: ({ params }) => `must be a multiple of ${params.multipleOf}`,
  format: ({ params }) => `must be ${formats[String(params.format)] ?? `of the form ${params.format}`}`,
  pattern: ({ params }) => `must have the form ${params.pattern}`,
};

const formats: Record<string, string> = {
  uuid: "a UUID",
  "date-time": "a date and time such as 2026-01-31T09:30:00Z",
  date: "a date such as 2026-01-31",
  email: "an e-mail address",
  uri: "a URL",
};

const types: Record<string, string> = {
  integer: "a whole number",
  number: "a number",
  string: "text",
  boolean: "true or false",
  object: "an object",
  array: "a list",
  null: "null",
};

function typeNamed(type: unknown): string {
  return [type]
    .flat()
    .map((name) => types[String(name)] ?? String(name))
    .join(" or ");
}

function kindOf({ data, instancePath }: SchemaError): string {
  if (data === null) return instancePath === "" ? "nothing" : "null";
  if (Array.isArray(data)) return "a list";
  return typeof data === "number" ? String(data) : (types[typeof data] ?? "that");
}

function alternatives(schema: unknown): string {
  const all = schema as readonly { const?: unknown }[];
  if (all.every((one) => "const" in one)) return oneOf(all.map((one) => one.const));
  return "matches none of the accepted forms";
}

const oneOf = (values: readonly unknown[]) => `must be one of ${values.map(shown).join(", ")}`;

const shown = (value: unknown) => (typeof value === "string" ? quoted(value) : JSON.stringify(value));
