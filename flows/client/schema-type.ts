/**
 * The TypeScript type of a schema. Our schemas are closed objects made by TypeBox; any other form is an error, so that no type is
 * wrong without a sign.
 */
import { refName, type Schema } from "./openapi.ts";

/** The class of errors has these fields, so that a problem in a batch has the same type. */
const renamed: Readonly<Record<string, string>> = { Problem: "ProblemFields" };

export const typeName = (component: string): string => renamed[component] ?? component;

export function schemaType(schema: Schema): string {
  if (schema.$ref !== undefined) return typeName(refName(schema.$ref));
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return union(schema.enum.map((value) => JSON.stringify(value)));
  if (schema.allOf) throw new Error(`allOf has no type here: ${JSON.stringify(schema)}`);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return union(choices.map(schemaType));
  const types = [schema.type ?? "unknown"].flat();
  // In a request, an int64 may also be a string of digits, which is how the client sends it.
  if (schema.format === "int64") return union(["bigint", ...(types.includes("null") ? ["null"] : [])]);
  return union(types.map((type) => simpleType(type, schema)));
}

function simpleType(type: string, schema: Schema): string {
  switch (type) {
    case "string":
    case "boolean":
    case "null":
    case "unknown":
      return type;
    case "integer":
    case "number":
      return "number";
    case "array":
      return `readonly ${parenthesised(schemaType(schema.items ?? {}))}[]`;
    case "object":
      return objectType(schema);
  }
  throw new Error(`the type ${type} is unknown: ${JSON.stringify(schema)}`);
}

export function objectType({ properties, patternProperties, additionalProperties, required = [] }: Schema): string {
  if (properties) {
    const lines = Object.entries(properties).map(([name, schema]) => {
      const optional = required.includes(name) ? "" : "?";
      return `${comment(schema.description)}readonly ${quoted(name)}${optional}: ${schemaType(schema)};\n`;
    });
    return `{\n${lines.join("")}}`;
  }
  const [values] = Object.values(patternProperties ?? {});
  const more = values ?? (typeof additionalProperties === "object" ? additionalProperties : undefined);
  return `Readonly<Record<string, ${more ? schemaType(more) : "unknown"}>>`;
}

const union = (types: readonly string[]): string => [...new Set(types)].join(" | ");
const parenthesised = (type: string): string => (type.includes(" ") && !type.startsWith("{") ? `(${type})` : type);
const quoted = (name: string): string => (/^\w+$/.test(name) ? name : JSON.stringify(name));

export const comment = (text: string | undefined): string => (text ? `/** ${text.replaceAll("*/", "*\\/")} */\n` : "");
