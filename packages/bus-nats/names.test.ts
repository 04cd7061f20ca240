import { expect, test } from "vitest";
import { createNames } from "./names.ts";

test("an event is in the stream of the service that its subject begins with", () => {
  const names = createNames(undefined);
  expect(names.resolve("entitlement.events")).toEqual({ stream: "ENTITLEMENT", subject: "entitlement.events" });
  expect(names.streamSubjects("ENTITLEMENT")).toBe("entitlement.>");
});

test("a namespace has its own streams and subjects", () => {
  const names = createNames("staging");
  const address = names.resolve("points.events");
  expect(address).toEqual({ stream: "STAGING=POINTS", subject: "staging.points.events" });
  expect(names.streamSubjects("STAGING=POINTS")).toBe("staging.points.>");
  expect(names.toEventSubject("staging.points.events")).toBe("points.events");
  expect(names.isOurs("STAGING=POINTS")).toBe(true);
  expect(names.isOurs("POINTS")).toBe(false);
  expect(createNames(undefined).isOurs("STAGING=POINTS")).toBe(false);
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
])("the subject %j is invalid", (subject) => {
  expect(createNames(undefined).resolve(subject)).toBeUndefined();
  expect(() => createNames(undefined).durables("consumer", [subject])).toThrow("must be a service in lower case");
});

test("a consumer has one durable per stream, named after its subjects", () => {
  const durables = createNames(undefined).durables("notification", [
    "points.events",
    "orders.events",
    "points.a.reservations",
  ]);
  expect(durables.map(({ stream, durable, filter }) => [stream, durable, filter])).toEqual([
    ["POINTS", "notification=a~reservations=events", "points.>"],
    ["ORDERS", "notification=events", "orders.events"],
  ]);
});

test("names that contain a separator are rejected", () => {
  expect(() => createNames("a=b")).toThrow("must be");
  expect(() => createNames("A")).toThrow("must be");
  expect(() => createNames(undefined).durables("a=b", ["a.b"])).toThrow("must be");
  expect(() => createNames(undefined).durables("a.b", ["a.b"])).toThrow("must be");
});
