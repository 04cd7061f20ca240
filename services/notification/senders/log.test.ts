import { done } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { logSender } from "./log.ts";

test("the log gets ids and never the text", async () => {
  const lines: [object, string][] = [];
  const send = logSender({ info: (fields, message) => lines.push([fields, message]) });
  const notification = {
    notificationId: "n",
    eventId: "e",
    userId: "u_123",
    eventType: "EntitlementGranted",
    text: { en: "secret text", ja: "秘密" },
    data: null,
    occurredAt: "2026-01-08T07:10:00Z",
    headers: { trace_id: "t", traceparent: "p" },
    ageMs: 0,
  };
  expect(await send(notification, { attempt: 2, signal: new AbortController().signal })).toBe(done);
  expect(lines).toEqual([
    [
      {
        notification_id: "n",
        user_id: "u_123",
        event_id: "e",
        event_type: "EntitlementGranted",
        attempt: 2,
        trace_id: "t",
      },
      "notification sent",
    ],
  ]);
});
