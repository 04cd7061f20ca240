import { randomUUID } from "node:crypto";

/** A UUID v7, which begins with the time. Node has `randomUUIDv7` only since version 26, and the kernel runs on older ones too. */
export function newEventId(): string {
  const time = Date.now().toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}
