import { expect, test } from "vitest";
import { queueArguments, Topology } from "./topology.ts";

test("queues have no delivery limit on RabbitMQ 4; the setting is left out on RabbitMQ 3", () => {
  const limit = (version: string) => queueArguments({ product: "RabbitMQ", version })["x-delivery-limit"];
  expect(["3.10.8", "3.13.7", "unknown"].map(limit)).toEqual([undefined, undefined, undefined]);
  expect(["4.0.1", "4.1.0-rc.2", "4.3.5", "10.0.0"].map(limit)).toEqual([-1, -1, -1, -1]);
});

test.each(["", "with a space", "with.dot", "é", "x".repeat(65)])("the name %j is rejected", (name) => {
  const options = { newQueueDelayMs: 0, log: () => {} };
  expect(() => new Topology({ namespace: name, ...options })).toThrow("must be 1 to 64 letters");
  expect(() => new Topology({ namespace: "todoke", ...options }).queueName(name)).toThrow("must be 1 to 64 letters");
});

test("a queue has the name that `queues` gives it, and so have its retry queues", () => {
  const topology = new Topology({
    namespace: "todoke",
    queues: { points: "reservationQueue" },
    newQueueDelayMs: 0,
    log() {},
  });
  expect(topology.queueName("points")).toBe("reservationQueue");
  expect(topology.retryQueueName("points", 100)).toBe("reservationQueue.retry.100ms");
  expect(topology.queueName("notification")).toBe("todoke.notification");
  const dotted = { namespace: "todoke", queues: { points: "a.b" }, newQueueDelayMs: 0, log() {} };
  expect(() => new Topology(dotted)).toThrow("must be 1 to 64 letters");
});
