/** Schemas with a name, and schemas that services spell alike. */
import { type TProperties, type TSchema, Type } from "typebox";

/** An object that OpenAPI documents have once, as a component of this name. */
export const named = <Properties extends TProperties>(title: string, properties: Properties) =>
  Type.Object(properties, { title });

export const oneOf = <const Values extends readonly string[]>(values: Values, options: object = {}) =>
  Type.Unsafe<Values[number]>({ anyOf: values.map((value) => ({ type: "string", const: value })), ...options });

export const orNull = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
