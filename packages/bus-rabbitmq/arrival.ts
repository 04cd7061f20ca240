/**
 * A message as it came, and its answer. It can be answered on the channel on which it came, and on no other; when that
 * is gone there is nothing to say, for the broker has taken the message back, and it comes again.
 */
import type { AsyncMessage, Channel } from "rabbitmq-client";

export interface Arrival {
  readonly message: AsyncMessage;
  readonly tally: Tally;
}

/**
 * Keeps the books of one channel: which of its messages are answered.
 *
 * RabbitMQ takes "this one and all before it" three times as fast as each by itself, so a batch is acknowledged like that
 * when all before it are answered. The broker numbers the messages of a channel one by one; a number that never reached us
 * stays unanswered, and so can never be acknowledged by mistake.
 */
export class Tally {
  readonly channel: Channel;
  /** In their order. */
  readonly #unanswered = new Set<number>();
  #nextTag = 1;

  constructor(channel: Channel) {
    this.channel = channel;
  }

  arrive(message: AsyncMessage): Arrival {
    while (this.#nextTag <= message.deliveryTag) this.#unanswered.add(this.#nextTag++);
    return { message, tally: this };
  }

  acknowledge(tags: readonly number[]): void {
    for (const tag of tags) this.#unanswered.delete(tag);
    if (!this.channel.active) return;
    const last = Math.max(...tags);
    const [oldest = Number.POSITIVE_INFINITY] = this.#unanswered;
    if (oldest > last) this.channel.basicAck({ deliveryTag: last, multiple: true });
    else for (const deliveryTag of tags) this.channel.basicAck({ deliveryTag });
  }

  giveBack(deliveryTag: number): void {
    this.#unanswered.delete(deliveryTag);
    if (this.channel.active) this.channel.basicNack({ deliveryTag, requeue: true });
  }
}

/** They are done with. */
export function acknowledge(arrivals: readonly Arrival[]): void {
  for (const [tally, ofOneChannel] of Map.groupBy(arrivals, (arrival) => arrival.tally)) {
    tally.acknowledge(ofOneChannel.map(({ message }) => message.deliveryTag));
  }
}

/** It goes to whoever is ready for it, at once and before the others of its queue. */
export function giveBack({ message, tally }: Arrival): void {
  tally.giveBack(message.deliveryTag);
}
