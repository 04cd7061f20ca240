/**
 * The id of a request, in every log line and response: the caller's own if it is well-formed, else a new one.
 *
 * New ids are UUIDs of version 7 and sort by time. They are no secrets, so the random part is drawn once per process, and a
 * counter distinguishes those of one millisecond: a tenth of the cost of fresh randomness.
 */
import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";

const wellFormed = /^[\x21-\x7e]{1,64}$/;

export function readRequestId({ headers }: IncomingMessage): string {
  const given = headers["x-request-id"];
  return typeof given === "string" && wellFormed.test(given) ? given : newRequestId();
}

const ofThisProcess = randomUUID().slice(18); // "-8a6b-2c4d5e6f7a8b"
const counterEnd = 0x1000; // As many as fit in the 12 bits that RFC 9562 leaves for it.

let time = 0;
let timeText = "";
let counter = 0;

export function newRequestId(): string {
  // If the counter is used up, or the clock goes back, continue from the time of the last id.
  const now = Math.max(Date.now(), counter === counterEnd ? time + 1 : time);
  if (now !== time) {
    time = now;
    counter = 0;
    const hex = now.toString(16).padStart(12, "0");
    timeText = `${hex.slice(0, 8)}-${hex.slice(8)}-`;
  }
  return timeText + (0x7000 + counter++).toString(16) + ofThisProcess;
}
