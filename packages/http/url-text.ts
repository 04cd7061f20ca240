/** What a URL says in percent signs is held to the rules of a body: valid UTF-8, no control characters, named faults. */
import type { FastifyRequest } from "fastify";
import { readablePath } from "./field-path.ts";
import { unkeepable } from "./keepable-text.ts";
import { invalidRequest, malformedUrl } from "./problems.ts";

/** Throws a Problem when part of the URL cannot be kept. Free for URLs without a percent sign. */
export function refuseUnkeepableUrl(request: FastifyRequest): void {
  const url = request.raw.url ?? "";
  if (!url.includes("%")) return;
  refuseBrokenUtf8(url);
  refuseUnkeepableValues("path", request.params);
  refuseUnkeepableValues("query", request.query);
}

/** The router refuses a broken path itself; a broken query it would hand on undecoded. */
function refuseBrokenUtf8(url: string): void {
  try {
    decodeURIComponent(url.slice(url.indexOf("?") + 1));
  } catch {
    throw malformedUrl("the query is not percent-encoded UTF-8");
  }
}

function refuseUnkeepableValues(root: string, values: unknown): void {
  for (const [key, value] of Object.entries(values ?? {})) {
    const detail = unkeepable(key) ?? [value].flat().map(unkeepable).find(Boolean);
    if (!detail) continue;
    const field = readablePath(root, [key]);
    throw invalidRequest(`${field} ${detail}`, { fields: [{ field, detail }] });
  }
}
