import { expect, test } from "vitest";
import { namesIn } from "./names.ts";

test("an event lives in the stream of the service that its subject begins with", () => {
  const names = namesIn(undefined);
  expect(names.addressOf("entitlement.events")).toEqual({ stream: "ENTITLEMENT", subject: "entitlement.events" });
  expect(names.subjectsOf("ENTITLEMENT")).toBe("entitlement.>");
});

test("a place has streams and subjects of its own", () => {
  const names = namesIn("staging");
  const address = names.addressOf("points.events");
  expect(address).toEqual({ stream: "STAGING=POINTS", subject: "staging.points.events" });
  expect(names.subjectsOf("STAGING=POINTS")).toBe("staging.points.>");
  expect(names.subjectOf("staging.points.events")).toBe("points.events");
  expect(names.isOurs("STAGING=POINTS")).toBe(true);
  expect(names.isOurs("POINTS")).toBe(false);
  expect(namesIn(undefined).isOurs("STAGING=POINTS")).toBe(false);
});

test.each([
  "",
  "events",
  "entitlement.",
  ".events",
  "Entitlement.events",
  "entitlement.*",
  "entitlement.>",
  "a b.c",
  "a.b c",
  "é.b",
  "a..b",
])("the subject %j has no address", (subject) => {
  expect(namesIn(undefined).addressOf(subject)).toBeUndefined();
  expect(() => namesIn(undefined).durablesOf("consumer", [subject])).toThrow("must be a service in lower case");
});

test("a consumer has one durable for each stream, named after what it asked for", () => {
  const durables = namesIn(undefined).durablesOf("notification", [
    "points.events",
    "orders.events",
    "points.a.reservations",
  ]);
  expect(durables.map(({ stream, durable, filter }) => [stream, durable, filter])).toEqual([
    ["POINTS", "notification=a~reservations=events", "points.>"],
    ["ORDERS", "notification=events", "orders.events"],
  ]);
});

test("what is joined is never ambiguous", () => {
  expect(() => namesIn("a=b")).toThrow("must be");
  expect(() => namesIn("A")).toThrow("must be");
  expect(() => namesIn(undefined).durablesOf("a=b", ["a.b"])).toThrow("must be");
  expect(() => namesIn(undefined).durablesOf("a.b", ["a.b"])).toThrow("must be");
});
