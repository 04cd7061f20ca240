/**
 * Turns the errors of the schema validator into one Problem that lists all of them, in every part of the request, each with its
 * field, so that a caller can fix them at once.
 */
import type { FieldError, Problem } from "@todoke/kernel/problem";
import type { FastifyRequest } from "fastify";
import { type Path, readablePath } from "./field-path.ts";
import { idempotencyKeyMissing, invalidRequest } from "./problems.ts";
import { type SchemaError, sentenceOf } from "./schema-errors.ts";

const listedMax = 20; // Enough for any form; a hostile body must not cause a long response.
const namedMax = 3; // In the sentence of `detail`.

/** The parts of a request with a schema, and the name of each in a field path. Fastify stops at the first bad one. */
const parts = [
  { part: "params", root: "path", given: (request: FastifyRequest) => request.params },
  { part: "body", root: "body", given: (request: FastifyRequest) => request.body },
  { part: "querystring", root: "query", given: (request: FastifyRequest) => request.query },
  { part: "headers", root: "header", given: (request: FastifyRequest) => request.headers },
] as const;

export function problemOfValidation(request: FastifyRequest): Problem {
  const errors = parts.flatMap(({ part, root, given }) => {
    const validate = request.getValidationFunction(part);
    if (!validate || validate(given(request) ?? null)) return [];
    return withoutAlternatives(validate.errors as SchemaError[]).map((error) => toFieldError(root, error));
  });
  const fields = errors.slice(0, listedMax);
  if (errors.every(({ field }) => field === "header.idempotency-key")) {
    return idempotencyKeyMissing("send an Idempotency-Key header, the same for every attempt of one request", {
      fields,
    });
  }
  return invalidRequest(sentence(errors), { fields });
}

/** If no alternative matches, only that is reported, not why each of them does not. */
function withoutAlternatives(errors: readonly SchemaError[]): readonly SchemaError[] {
  return errors.filter(({ schemaPath }) => !/\/(?:anyOf|oneOf)\/\d+\//.test(schemaPath));
}

function toFieldError(root: string, error: SchemaError): FieldError {
  const { missingProperty, additionalProperty } = error.params;
  const named = missingProperty ?? additionalProperty;
  const path = pathOf(error.instancePath);
  if (typeof named === "string") path.push(named);
  return { field: readablePath(root, path), detail: sentenceOf(error) };
}

/** "/items/2/name" (RFC 6901) as steps. */
function pathOf(pointer: string): Path {
  const steps = pointer.split("/").slice(1);
  return steps.map((step) => (/^\d+$/.test(step) ? Number(step) : step.replaceAll("~1", "/").replaceAll("~0", "~")));
}

function sentence(errors: readonly FieldError[]): string {
  const sentences = errors.slice(0, namedMax).map(({ field, detail }) => `${field} ${detail}`);
  const more = errors.length - sentences.length;
  return sentences.join("; ") + (more > 0 ? `; and ${more} more` : "");
}
