/**
 * The Idempotency-Key header: reads it from the request, and sends the stored response byte for byte. The rest is in
 * @todoke/kernel/idempotency.
 */
import { isUtf8 } from "node:buffer";
import { type CommandResponse, digestJson, type IdempotencyKey } from "@todoke/kernel/idempotency";
import type { FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import { idempotencyKeyInvalid, idempotencyKeyMissing } from "./problems.ts";

const Key = Type.String({
  title: "IdempotencyKey",
  description:
    "Identifies this command: 1 to 255 visible ASCII characters, preferably a UUID. Use the same key for every attempt of a " +
    "command, and a new key for every new command. A quoted string (structured field) is accepted too.",
  examples: ["0190f3c2-7a3b-7c1e-9f00-8a6b2c4d5e6f"],
});

/** For the schema of a route. It only requires the header; idempotencyKey() checks the value. */
export const IdempotencyHeaders = Type.Object({ "idempotency-key": Key });

/** For a route with a key of its own if the caller sends none. */
export const OptionalIdempotencyHeaders = Type.Object({
  "idempotency-key": Type.Optional(Type.String({ ...Key, title: "OptionalIdempotencyKey" })),
});

/**
 * The idempotency key of a request, for `once()`. `caller` is the authenticated caller: the same key of another caller, or on
 * another route, is another key.
 */
export function idempotencyKey(request: FastifyRequest, caller: string): IdempotencyKey {
  return {
    scope: `${caller} ${request.method} ${request.routeOptions.url}`,
    key: keyOf(request.headers["idempotency-key"]),
    requestHash: digestJson(hashedParts(request)),
  };
}

/** Path parameters are part of the request: the same key for another user is another request. */
function hashedParts({ params, body }: FastifyRequest): unknown {
  return Object.keys(params as object).length === 0 ? body : { params, body };
}

const visible = /^[\x21-\x7e]{1,255}$/;
const quotedString = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/; // RFC 8941, section 3.3.3

/** Node joins repeated headers with ", ", and no key contains a space: two keys are rejected as one invalid key. */
function keyOf(header: string | string[] | undefined): string {
  if (header === undefined) {
    throw idempotencyKeyMissing("send an Idempotency-Key header, the same for every attempt of one request", {
      fields: [{ field, detail: "is missing" }],
    });
  }
  const key = wellFormedKey(String(header));
  if (key !== undefined) return key;
  throw idempotencyKeyInvalid("send one key of 1 to 255 visible ASCII characters", {
    fields: [{ field, detail: "must be one key of 1 to 255 visible ASCII characters" }],
  });
}

/** The key in a header, without quotes; undefined if it is not valid. */
export function wellFormedKey(header: string): string | undefined {
  const key = header.startsWith('"') ? quotedString.exec(header)?.[1]?.replace(/\\(.)/g, "$1") : header;
  return key !== undefined && visible.test(key) ? key : undefined;
}

const field = "header.idempotency-key";

/**
 * Sends a stored response unchanged, and marks replays. UTF-8 is sent as text: Node then writes head and body at once,
 * which serves a tenth more requests.
 */
export function sendResponse(
  reply: FastifyReply,
  { status, contentType, body, replayed }: CommandResponse,
): FastifyReply {
  if (replayed) reply.header("idempotency-replayed", "true");
  return reply
    .code(status)
    .header("content-type", contentType)
    .send(isUtf8(body) ? body.toString() : body);
}
