import fc from "fast-check";
import type { AsyncMessage, Channel } from "rabbitmq-client";
import { expect, test } from "vitest";
import { AckTracker, ack, requeue } from "./ack-tracker.ts";

/** Fakes the broker side of a channel and records how each message was settled. */
function fakeBroker() {
  const settled = new Map<number, "ack" | "nack">();
  let acks = 0;
  const settle = (tag: number, how: "ack" | "nack") => {
    if (settled.has(tag)) throw new Error(`PRECONDITION_FAILED - unknown delivery tag ${tag}`);
    settled.set(tag, how);
  };
  const unsettledUpTo = (last: number) =>
    Array.from({ length: last }, (_, n) => n + 1).filter((tag) => !settled.has(tag));
  const channel: Pick<Channel, "active" | "basicAck" | "basicNack"> = {
    active: true,
    basicAck({ deliveryTag = 0, multiple }) {
      acks += 1;
      for (const tag of multiple ? unsettledUpTo(deliveryTag) : [deliveryTag]) settle(tag, "ack");
    },
    basicNack: ({ deliveryTag = 0 }) => settle(deliveryTag, "nack"),
  };
  return { channel: channel as Channel, settled, acks: () => acks };
}

const message = (deliveryTag: number): AsyncMessage => ({
  deliveryTag,
  consumerTag: "c",
  redelivered: false,
  exchange: "",
  routingKey: "",
  body: Buffer.alloc(0),
});

test("a batch is acked with one frame if all earlier messages are acked", () => {
  const { channel, settled, acks } = fakeBroker();
  const tracker = new AckTracker(channel);
  ack([1, 2, 3].map((tag) => tracker.track(message(tag))));
  ack([4, 5].map((tag) => tracker.track(message(tag))));
  expect([...settled.keys()]).toEqual([1, 2, 3, 4, 5]);
  expect(acks()).toBe(2);
});

test("a message that never arrived is never acked", () => {
  const { channel, settled } = fakeBroker();
  const tracker = new AckTracker(channel);
  ack([1, 2, 4, 5].map((tag) => tracker.track(message(tag))));
  expect([...settled.keys()]).toEqual([1, 2, 4, 5]);
});

test("in any order of acks, each message is settled once and correctly", () => {
  const settlements = fc.array(fc.record({ isAck: fc.boolean(), size: fc.integer({ min: 1, max: 5 }) }), {
    maxLength: 20,
  });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), settlements, fc.infiniteStream(fc.nat()), (count, batches, random) => {
      const { channel, settled } = fakeBroker();
      const tracker = new AckTracker(channel);
      const open = Array.from({ length: count }, (_, n) => tracker.track(message(n + 1)));
      const expected = new Map<number, "ack" | "nack">();
      for (const { isAck, size } of batches) {
        const batch = Array.from({ length: Math.min(size, open.length) }, () => {
          const [taken] = open.splice(random.next().value % open.length, 1);
          return taken ?? expect.fail("there is none");
        });
        for (const { message } of batch) expected.set(message.deliveryTag, isAck ? "ack" : "nack");
        if (isAck) ack(batch);
        else for (const received of batch) requeue(received);
      }
      expect(new Map([...settled].sort())).toEqual(new Map([...expected].sort()));
    }),
  );
});
