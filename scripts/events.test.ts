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

test("each subject of the contracts is emitted by exactly one service", () => {
  const declared = services.flatMap(({ emits }) => emits);
  const subjects = new Set(Object.values(events).map(({ subject }) => subject));
  expect(declared.toSorted()).toEqual([...subjects].sort());
});

test("the services' subscriptions are those of the contracts", () => {
  const declared = services.filter(({ consumes }) => consumes.length > 0);
  expect(Object.fromEntries(declared.map(({ name, consumes }) => [name, consumes]))).toEqual(consumers);
});
