/**
 * Acks of received messages. A message can be acked only on the channel on which it came. If that channel is closed, the broker
 * has requeued the message and redelivers it.
 */
import type { AsyncMessage, Channel } from "rabbitmq-client";

export interface ReceivedMessage {
  readonly message: AsyncMessage;
  readonly tracker: AckTracker;
}

/**
 * Tracks the unacked messages of one channel.
 *
 * RabbitMQ handles an ack of "this message and all before it" three times as fast as single acks, so a batch is acked that way
 * if all earlier messages are acked. The broker numbers the messages of a channel without gaps; a number that never arrived
 * stays unacked, so it can never be acked by mistake.
 */
export class AckTracker {
  readonly channel: Channel;
  /** In ascending order. */
  readonly #unacked = new Set<number>();
  #nextTag = 1;

  constructor(channel: Channel) {
    this.channel = channel;
  }

  track(message: AsyncMessage): ReceivedMessage {
    while (this.#nextTag <= message.deliveryTag) this.#unacked.add(this.#nextTag++);
    return { message, tracker: this };
  }

  ack(tags: readonly number[]): void {
    for (const tag of tags) this.#unacked.delete(tag);
    if (!this.channel.active) return;
    const last = Math.max(...tags);
    const [oldest = Number.POSITIVE_INFINITY] = this.#unacked;
    if (oldest > last) this.channel.basicAck({ deliveryTag: last, multiple: true });
    else for (const deliveryTag of tags) this.channel.basicAck({ deliveryTag });
  }

  requeue(deliveryTag: number): void {
    this.#unacked.delete(deliveryTag);
    if (this.channel.active) this.channel.basicNack({ deliveryTag, requeue: true });
  }
}

export function ack(messages: readonly ReceivedMessage[]): void {
  for (const [tracker, ofOneChannel] of Map.groupBy(messages, (received) => received.tracker)) {
    tracker.ack(ofOneChannel.map(({ message }) => message.deliveryTag));
  }
}

/** Returns the message to the head of its queue; the broker redelivers it at once. */
export function requeue({ message, tracker }: ReceivedMessage): void {
  tracker.requeue(message.deliveryTag);
}
