/**
 * Turns what the schema validator found into a Problem that lists every fault, in every part of the request, each with
 * the field it belongs to: a caller wants to mend them all at once.
 */
import type { FieldFault, Problem } from "@todoke/kernel/problem";
import type { FastifyRequest } from "fastify";
import { type SchemaFault, sentenceOf } from "./fault-sentences.ts";
import { type Path, readablePath } from "./field-path.ts";
import { idempotencyKeyMissing, invalidRequest } from "./problems.ts";

const listedMax = 20; // Enough for any form; a hostile body must not buy itself a long answer.
const toldMax = 3; // As many as one reads in a sentence.

/** The parts of a request that have a schema, and what a field of each is called. Fastify stops at the first bad one. */
const parts = [
  { part: "params", root: "path", given: (request: FastifyRequest) => request.params },
  { part: "body", root: "body", given: (request: FastifyRequest) => request.body },
  { part: "querystring", root: "query", given: (request: FastifyRequest) => request.query },
  { part: "headers", root: "header", given: (request: FastifyRequest) => request.headers },
] as const;

export function problemOfValidation(request: FastifyRequest): Problem {
  const faults = parts.flatMap(({ part, root, given }) => {
    const validate = request.getValidationFunction(part);
    if (!validate || validate(given(request) ?? null)) return [];
    return worthTelling(validate.errors as SchemaFault[]).map((fault) => fieldFault(root, fault));
  });
  const fields = faults.slice(0, listedMax);
  if (faults.every(({ field }) => field === "header.idempotency-key")) {
    return idempotencyKeyMissing("send an Idempotency-Key header: the same in every try of one request", { fields });
  }
  return invalidRequest(told(faults), { fields });
}

/** Of alternatives, each is refused for a reason of its own; only that none fits is worth telling. */
function worthTelling(faults: readonly SchemaFault[]): readonly SchemaFault[] {
  return faults.filter(({ schemaPath }) => !/\/(?:anyOf|oneOf)\/\d+\//.test(schemaPath));
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

function told(faults: readonly FieldFault[]): string {
  const sentences = faults.slice(0, toldMax).map(({ field, detail }) => `${field} ${detail}`);
  const more = faults.length - sentences.length;
  return sentences.join("; ") + (more > 0 ? `; and ${more} more` : "");
}
