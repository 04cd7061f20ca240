/**
 * Turns the errors of the schema validator into one Problem that lists all of them, in every part of the request, each with its
 * field, so that a caller can fix them at once.
 */
import type { FieldFault, Problem } from "@todoke/kernel/problem";
import type { FastifyRequest } from "fastify";
import { type Path, readablePath } from "./field-path.ts";
import { idempotencyKeyMissing, invalidRequest } from "./problems.ts";
import { type SchemaFault, sentenceOf } from "./schema-errors.ts";

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
    return withoutAlternatives(validate.errors as SchemaFault[]).map((fault) => fieldFault(root, fault));
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
function withoutAlternatives(errors: readonly SchemaFault[]): readonly SchemaFault[] {
  return errors.filter(({ schemaPath }) => !/\/(?:anyOf|oneOf)\/\d+\//.test(schemaPath));
}

function fieldFault(root: string, fault: SchemaFault): FieldFault {
  const { missingProperty, additionalProperty } = fault.params;
  const named = missingProperty ?? additionalProperty;
  const path = pathOf(fault.instancePath);
  if (typeof named === "string") path.push(named);
  return { field: readablePath(root, path), detail: sentenceOf(fault) };
}

/** "/items/2/name" (RFC 6901) as steps. */
function pathOf(pointer: string): Path {
  const steps = pointer.split("/").slice(1);
  return steps.map((step) => (/^\d+$/.test(step) ? Number(step) : step.replaceAll("~1", "/").replaceAll("~0", "~")));
}

function sentence(errors: readonly FieldFault[]): string {
  const sentences = errors.slice(0, namedMax).map(({ field, detail }) => `${field} ${detail}`);
  const more = errors.length - sentences.length;
  return sentences.join("; ") + (more > 0 ? `; and ${more} more` : "");
}
