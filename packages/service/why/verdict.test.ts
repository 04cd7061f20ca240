import { expect, test } from "vitest";
import type { Part, TimelineEntry } from "./explanation.ts";
import { decide } from "./verdict.ts";

const at = (minute: number) => `2026-11-18T10:${String(minute).padStart(2, "0")}:00.000000Z`;

const entry = (kind: string, more: Partial<TimelineEntry> = {}): TimelineEntry => ({
  service: "entitlement",
  kind,
  id: "x",
  at: at(0),
  state: null,
  attempt: null,
  process: null,
  trace_id: null,
  detail: null,
  error: null,
  next_retry_at: null,
  blocked_by: null,
  dead_letter: null,
  links: [],
  ...more,
});

const parts = (...failed: string[]): Part[] =>
  ["account", "entitlement", "gateway-bff", "matchmaking", "notification"].map((service) => ({
    service,
    status: failed.includes(service) ? "failed" : "ok",
    reason: null,
  }));

const dead = (service: string, table: string) => ({ service, table, id: "x" });
const blocker = (more: object = {}) => ({
  service: "entitlement",
  kind: "event",
  id: "e7",
  state: "FAILED",
  since: at(2),
  error: "webhook answered 410",
  dead_letter: { service: "entitlement", table: "outbox_events", id: "e7" },
  ...more,
});

/** All that is found is found by the id itself, unless `direct` says how much of it is. */
const say = (entries: readonly TimelineEntry[], { direct = entries.length, id = "x", failed = [] as string[] } = {}) =>
  decide({ id, direct: entries.slice(0, direct), entries, parts: parts(...failed) });

const published = entry("published", { detail: "to entitlement.events", at: at(1) });
const processed = entry("processed", { service: "notification", at: at(2), state: "effect" });

test.each<[what: string, entries: readonly TimelineEntry[], outcome: string, sentence: string]>([
  [
    "a parked event",
    [entry("event", { state: "PENDING", blocked_by: blocker() })],
    "blocked",
    "The event x waits behind the event e7 of the same aggregate, which is FAILED since 2026-11-18T10:02:00Z: webhook answered 410; redrive or discard that one.",
  ],
  [
    "an event behind one that is retried",
    [entry("event", { state: "PENDING", blocked_by: blocker({ state: "PENDING", dead_letter: null }) })],
    "retrying",
    "The event x waits behind the event e7 of the same aggregate, which is PENDING: webhook answered 410.",
  ],
  [
    "a FAILED event",
    [
      entry("event", {
        state: "FAILED",
        attempt: 1,
        error: "too large",
        dead_letter: dead("entitlement", "outbox_events"),
      }),
    ],
    "dead",
    "The event x is FAILED since 2026-11-18T10:00:00Z after 1 attempt: too large; redrive or discard it.",
  ],
  [
    "a dead event of a consumer",
    [entry("dead", { service: "points", state: "DEAD", error: null, dead_letter: dead("points", "inbox_dlq") })],
    "dead",
    "The dead letter x of points is DEAD since 2026-11-18T10:00:00Z: no error was recorded; redrive or discard it.",
  ],
  [
    "a dead letter that was redriven and waits",
    [entry("dead", { service: "points", state: "PENDING" })],
    "waiting",
    "The dead letter x of points is PENDING since 2026-11-18T10:00:00Z.",
  ],
  [
    "an unresolved order",
    [
      entry("order", { state: "unknown", error: "no reply", next_retry_at: at(9) }),
      entry("step", { state: "unknown", at: at(3) }),
    ],
    "retrying",
    "The order x is unresolved since 2026-11-18T10:03:00Z: no reply; the broker is asked about it again at 2026-11-18T10:09:00Z.",
  ],
  [
    "a delivery that fails",
    [
      published,
      entry("delivery", { service: "bus", state: "PENDING", attempt: 2, error: "down", next_retry_at: at(5) }),
    ],
    "retrying",
    "The delivery x failed 2 times and the next attempt is at 2026-11-18T10:05:00Z: down.",
  ],
  [
    "attempts before the event was processed after all",
    [published, entry("attempt", { service: "notification", attempt: 2, error: "down" }), processed],
    "done",
    "The event x was published at 2026-11-18T10:01:00Z; notification took the event x at 2026-11-18T10:02:00Z.",
  ],
  [
    "an event that its consumer has not taken",
    [entry("event", { state: "PUBLISHED" }), published],
    "waiting",
    "The event x was published at 2026-11-18T10:01:00Z, and notification has not taken it yet.",
  ],
  [
    "a claimed notification",
    [entry("notification", { state: "PROCESSING", process: "sender 1" })],
    "waiting",
    "The notification x is PROCESSING since 2026-11-18T10:00:00Z; sender 1 works on it.",
  ],
  [
    "a suspended user",
    [
      entry("user", { state: "SUSPENDED" }),
      entry("commit", { state: "SUSPEND", at: at(4), process: "user:admin", detail: "spam" }),
    ],
    "blocked",
    "The user x is suspended since 2026-11-18T10:04:00Z by user:admin: spam.",
  ],
  [
    "a deleted user",
    [entry("user", { state: "DELETED" }), entry("commit", { state: "DELETE", at: at(4), process: "user:x" })],
    "removed",
    "The user x was deleted at 2026-11-18T10:04:00Z by user:x.",
  ],
  [
    "a discarded event",
    [entry("discard", { process: "aki", detail: "a test." })],
    "removed",
    "x was discarded by aki at 2026-11-18T10:00:00Z: a test.",
  ],
  [
    "a refused request",
    [entry("request", { state: "409", detail: "insufficient-points" })],
    "refused",
    "No event was written: the request was refused at 2026-11-18T10:00:00Z with 409 (insufficient-points).",
  ],
  [
    "an answered request without events",
    [entry("request", { state: "200" })],
    "done",
    "The request with the key x was answered with 200 at 2026-11-18T10:00:00Z.",
  ],
  [
    "only a mark is left",
    [processed],
    "expired",
    "The event x was processed by notification at 2026-11-18T10:02:00Z; its own row was removed by age.",
  ],
  [
    "a matched ticket",
    [entry("ticket", { state: "MATCHED" })],
    "done",
    "The ticket x is MATCHED since 2026-11-18T10:00:00Z.",
  ],
])("%s", (_what, entries, outcome, sentence) => {
  expect(say(entries)).toMatchObject({ outcome, sentence });
});

test("a dead letter comes before what is refused, retried or done, and a redriven one is no longer dead", () => {
  const notification = entry("notification", {
    service: "notification",
    state: "FAILED",
    error: "410",
    attempt: 10,
    dead_letter: dead("notification", "notifications"),
  });
  const all = [entry("request", { state: "409" }), entry("event", { state: "PENDING" }), notification];
  expect(say(all)).toMatchObject({
    outcome: "dead",
    cure: {
      command: "todoke dead redrive notification x --reason <text>",
      dead_letter: dead("notification", "notifications"),
    },
  });
  expect(say(all.map((each) => ({ ...each, dead_letter: null })))).toMatchObject({ outcome: "refused" });
});

test("a part that did not answer is named, and nothing is said to be unknown without it", () => {
  expect(say([], { failed: ["points", "notification"] })).toMatchObject({
    outcome: "incomplete",
    sentence: "Nothing is known about x, but notification did not answer.",
  });
  expect(say([entry("ticket", { state: "MATCHED" })], { failed: ["account"] }).sentence).toBe(
    "The ticket x is MATCHED since 2026-11-18T10:00:00Z (account did not answer completely).",
  );
  // A consumer that did not answer may have taken the event.
  expect(say([published], { failed: ["notification"] }).outcome).toBe("done");
});

test("of an id that nothing names, its form says whether it can have expired", () => {
  expect(say([], { id: "order-17" })).toMatchObject({ outcome: "unknown" });
  expect(say([], { id: "0190f3c2-7a3b-7c1e-9f00-8a6b2c4d5e6f" })).toMatchObject({
    outcome: "expired",
    sentence: expect.stringContaining("It is from 2024-07-27T"),
  });
  const now = Date.now().toString(16).padStart(12, "0");
  expect(say([], { id: `${now}00000000000000000001` }).sentence).toMatch(/By its form it was made at \d{4}-/);
  expect(say([], { id: "ffffffff-ffff-7fff-8fff-ffffffffffff" }).outcome).toBe("unknown");
});

test("an error of a receiver is one line of a bounded length", () => {
  const { sentence } = say([
    entry("event", {
      state: "FAILED",
      error: `a\n\u001b[31m${"x".repeat(1_000)}`,
      dead_letter: dead("entitlement", "outbox_events"),
    }),
  ]);
  expect(sentence).toMatch(/: a \[31mx+…; redrive or discard it\.$/);
  expect(sentence.length).toBeLessThan(400);
});
