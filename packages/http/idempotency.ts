/**
 * The Idempotency-Key header at the edge: read from the request, and its answer sent to the byte as it was stored.
 * What happens once, and why, is @todoke/kernel/idempotency.
 */
import { isUtf8 } from "node:buffer";
import { type Answer, digestOf, type IdempotencyKey } from "@todoke/kernel/idempotency";
import type { FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import { idempotencyKeyInvalid, idempotencyKeyMissing } from "./problems.ts";

/** For the schema of a route. It says only that the header must be there; idempotencyKey() says what it may be. */
export const IdempotencyHeaders = Type.Object({
  "idempotency-key": Type.String({
    description:
      "Names this command: 1 to 255 visible ASCII characters, best a UUID. The same key in every try of one command, " +
      "a new key for every new command. Also taken in quotes, as a structured field string.",
    examples: ["0190f3c2-7a3b-7c1e-9f00-8a6b2c4d5e6f"],
  }),
});

/**
 * What `once()` needs to know of a request. `caller` is who was authenticated: one caller's key never meets another's,
 * nor the same key on another route.
 */
export function idempotencyKey(request: FastifyRequest, caller: string): IdempotencyKey {
  return {
    scope: `${caller} ${request.method} ${request.routeOptions.url}`,
    key: keyOf(request.headers["idempotency-key"]),
    requestHash: digestOf(askedFor(request)),
  };
}

/** What the path names is part of what was asked for: the same key for another user is another request. */
function askedFor({ params, body }: FastifyRequest): unknown {
  return Object.keys(params as object).length === 0 ? body : { params, body };
}

const visible = /^[\x21-\x7e]{1,255}$/;
const quotedString = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/; // RFC 8941, section 3.3.3

/** Node joins a header that came twice with ", ", and a space is in no key: two keys are refused as one bad one. */
function keyOf(header: string | string[] | undefined): string {
  if (header === undefined) {
    throw idempotencyKeyMissing("send an Idempotency-Key header: the same in every try of one request", {
      fields: [{ field, detail: "is missing" }],
    });
  }
  const key = wellFormedKey(String(header));
  if (key !== undefined) return key;
  throw idempotencyKeyInvalid("send one key of 1 to 255 visible ASCII characters", {
    fields: [{ field, detail: "must be one key of 1 to 255 visible ASCII characters" }],
  });
}

/** The key in a header, without the quotes that it may have come in; none when it cannot be one. */
export function wellFormedKey(header: string): string | undefined {
  const key = header.startsWith('"') ? quotedString.exec(header)?.[1]?.replace(/\\(.)/g, "$1") : header;
  return key !== undefined && visible.test(key) ? key : undefined;
}

const field = "header.idempotency-key";

/**
 * Sends what was stored, unchanged; a replay says that it is one. As text where it is text: Node then writes head and body
 * at once, and a tenth more requests are answered.
 */
export function sendAnswer(reply: FastifyReply, { status, contentType, body, replayed }: Answer): FastifyReply {
  if (replayed) reply.header("idempotency-replayed", "true");
  return reply
    .code(status)
    .header("content-type", contentType)
    .send(isUtf8(body) ? body.toString() : body);
}
