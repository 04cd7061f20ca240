import { decodeEvent, type EventType, encodeEvent, events } from "@todoke/contracts";
import { fixedId } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { textOf } from "./templates.ts";

const event = (event_type: EventType) =>
  decodeEvent(
    event_type,
    encodeEvent(event_type, {
      event_id: fixedId(1),
      event_type,
      occurred_at: "2026-01-08T07:10:00Z",
      version: 1,
      user_id: "u_123",
      stock_keeping_unit: "item1",
      source: "purchase",
      source_id: "p_456",
      ...(event_type === "EntitlementExpired" && { expires_at: "2026-01-08T07:00:00Z" }),
    }),
  );

test("every event there is has words in English and in Japanese, which name the product", () => {
  const types = Object.keys(events) as EventType[];
  const texts = types.map((type) => textOf(type, event(type)));
  for (const { en, ja } of texts) {
    expect(en).toMatch(/^[\x20-\x7e]*item1[\x20-\x7e]*\.$/);
    expect(ja).toMatch(/item1.*[\u3040-\u30ff].*。$/);
  }
  expect(new Set(texts.map(({ en }) => en)).size).toBe(types.length);
});
