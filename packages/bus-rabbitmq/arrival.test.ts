import fc from "fast-check";
import type { AsyncMessage, Channel } from "rabbitmq-client";
import { expect, test } from "vitest";
import { acknowledge, giveBack, Tally } from "./arrival.ts";

/** The far side of a channel: it knows which numbers were settled, and how. */
function farSide() {
  const settled = new Map<number, "ack" | "nack">();
  let words = 0;
  const settle = (tag: number, how: "ack" | "nack") => {
    if (settled.has(tag)) throw new Error(`PRECONDITION_FAILED - unknown delivery tag ${tag}`);
    settled.set(tag, how);
  };
  const unsettledUpTo = (last: number) =>
    Array.from({ length: last }, (_, n) => n + 1).filter((tag) => !settled.has(tag));
  const channel: Pick<Channel, "active" | "basicAck" | "basicNack"> = {
    active: true,
    basicAck({ deliveryTag = 0, multiple }) {
      words += 1;
      for (const tag of multiple ? unsettledUpTo(deliveryTag) : [deliveryTag]) settle(tag, "ack");
    },
    basicNack: ({ deliveryTag = 0 }) => settle(deliveryTag, "nack"),
  };
  return { channel: channel as Channel, settled, words: () => words };
}

const message = (deliveryTag: number): AsyncMessage => ({
  deliveryTag,
  consumerTag: "c",
  redelivered: false,
  exchange: "",
  routingKey: "",
  body: Buffer.alloc(0),
});

test("a batch with nothing unanswered before it is acknowledged with one word", () => {
  const { channel, settled, words } = farSide();
  const tally = new Tally(channel);
  acknowledge([1, 2, 3].map((tag) => tally.arrive(message(tag))));
  acknowledge([4, 5].map((tag) => tally.arrive(message(tag))));
  expect([...settled.keys()]).toEqual([1, 2, 3, 4, 5]);
  expect(words()).toBe(2);
});

test("what never reached us is never acknowledged", () => {
  const { channel, settled } = farSide();
  const tally = new Tally(channel);
  acknowledge([1, 2, 4, 5].map((tag) => tally.arrive(message(tag))));
  expect([...settled.keys()]).toEqual([1, 2, 4, 5]);
});

test("in whatever order answers come, each message gets its own, once, and no other", () => {
  const answers = fc.array(fc.record({ ack: fc.boolean(), size: fc.integer({ min: 1, max: 5 }) }), { maxLength: 20 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), answers, fc.infiniteStream(fc.nat()), (count, batches, dice) => {
      const { channel, settled } = farSide();
      const tally = new Tally(channel);
      const open = Array.from({ length: count }, (_, n) => tally.arrive(message(n + 1)));
      const expected = new Map<number, "ack" | "nack">();
      for (const { ack, size } of batches) {
        const batch = Array.from({ length: Math.min(size, open.length) }, () => {
          const [taken] = open.splice(dice.next().value % open.length, 1);
          return taken ?? expect.fail("there is none");
        });
        for (const arrival of batch) expected.set(arrival.message.deliveryTag, ack ? "ack" : "nack");
        if (ack) acknowledge(batch);
        else for (const arrival of batch) giveBack(arrival);
      }
      expect(new Map([...settled].sort())).toEqual(new Map([...expected].sort()));
    }),
  );
});
