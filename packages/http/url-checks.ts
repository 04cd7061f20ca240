/** Percent-encoded text in a URL follows the rules of a body: valid UTF-8, no control characters, errors by field. */
import type { FastifyRequest } from "fastify";
import { readablePath } from "./field-path.ts";
import { invalidField, malformedUrl } from "./problems.ts";
import { storageError } from "./storable-text.ts";

/** Throws a Problem if a part of the URL cannot be stored. URLs without a percent sign cost nothing. */
export function rejectUnstorableUrl(request: FastifyRequest): void {
  const url = request.raw.url ?? "";
  if (!url.includes("%")) return;
  rejectBrokenUtf8(url);
  rejectUnstorableValues("path", request.params);
  rejectUnstorableValues("query", request.query);
}

/** The router rejects a broken path itself, but passes a broken query on undecoded. */
function rejectBrokenUtf8(url: string): void {
  try {
    decodeURIComponent(url.slice(url.indexOf("?") + 1));
  } catch {
    throw malformedUrl("the query is not percent-encoded UTF-8");
  }
}

function rejectUnstorableValues(root: string, values: unknown): void {
  for (const [key, value] of Object.entries(values ?? {})) {
    const detail = storageError(key) ?? [value].flat().map(storageError).find(Boolean);
    if (!detail) continue;
    throw invalidField(readablePath(root, [key]), detail);
  }
}
