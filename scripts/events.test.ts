import { consumers, events } from "@todoke/contracts";
import { expect, test } from "vitest";

const names = ["account", "entitlement", "gateway-bff", "matchmaking", "notification", "orders", "points"];

const services = await Promise.all(
  names.map(async (name) => ({ name, ...(await import(`@todoke/${name}`)).events }) as Promise<Declared>),
);

interface Declared {
  readonly name: string;
  readonly emits: readonly string[];
  readonly consumes: readonly string[];
}

test("every subject of the contracts is emitted by one service, and no other subject is", () => {
  const declared = services.flatMap(({ emits }) => emits);
  const subjects = new Set(Object.values(events).map(({ subject }) => subject));
  expect(declared.toSorted()).toEqual([...subjects].sort());
});

test("every consumer of the contracts is a service that consumes these subjects, and there is no other", () => {
  const declared = services.filter(({ consumes }) => consumes.length > 0);
  expect(Object.fromEntries(declared.map(({ name, consumes }) => [name, consumes]))).toEqual(consumers);
});
