import { expect, test } from "vitest";
import { queueArguments, Topology } from "./topology.ts";

test("RabbitMQ 4 is told to keep an event however often it comes back; RabbitMQ 3, which would drop it, is not", () => {
  const limit = (version: string) => queueArguments({ product: "RabbitMQ", version })["x-delivery-limit"];
  expect(["3.10.8", "3.13.7", "unknown"].map(limit)).toEqual([undefined, undefined, undefined]);
  expect(["4.0.1", "4.1.0-rc.2", "4.3.5", "10.0.0"].map(limit)).toEqual([-1, -1, -1, -1]);
});

test.each(["", "with a space", "with.dot", "é", "x".repeat(65)])("the name %j is refused", (name) => {
  const options = { newQueueRestMs: 0, log: () => {} };
  expect(() => new Topology({ place: name, ...options })).toThrow("must be 1 to 64 letters");
  expect(() => new Topology({ place: "todoke", ...options }).queueOf(name)).toThrow("must be 1 to 64 letters");
});
