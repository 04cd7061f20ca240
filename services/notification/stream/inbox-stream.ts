/**
 * One client's stream of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
 *
 * Every event has its position as `id`, and the stream starts with one, so a client that reconnects with the last id misses
 * nothing, even if it has received no event. The buffer for a slow client is bounded: while it is full nothing is read for
 * the stream, and a client that reads nothing at all is disconnected.
 */
import type { ServerResponse } from "node:http";
import type { Position, StreamedNotification } from "../store/new-notifications.ts";
import { toUserNotification } from "./user-notification.ts";

export interface StreamStart {
  readonly userId: string;
  readonly position: Position;
  /** The client's position is not from this database: it has to list the user inbox again. */
  readonly isReset: boolean;
}

// Fits a page of notifications. The buffer exceeds it by at most the page that was being read.
const bufferMaxBytes = 64 * 1_024;

export class InboxStream {
  readonly userId: string;
  /** Resolves when the connection is closed by either side. */
  readonly closed: Promise<void>;
  readonly #response: ServerResponse;
  readonly #openedAt = performance.now();
  #position: Position;
  #writtenBytes = 0;
  #flushedBytes = -1;

  constructor({ userId, position, isReset }: StreamStart, response: ServerResponse) {
    this.userId = userId;
    this.#position = position;
    this.#response = response;
    this.closed = new Promise((resolve) => response.once("close", resolve));
    this.#write(`${retryLine()}id: ${position}\n${isReset ? "event: reset\ndata: {}\n" : ""}\n`);
  }

  /** The position of the last notification that was written. */
  get position(): Position {
    return this.#position;
  }

  get hasRoom(): boolean {
    return this.#response.writableLength < bufferMaxBytes;
  }

  send(notification: StreamedNotification): void {
    const { position } = notification;
    this.#write(`id: ${position}\nevent: notification\ndata: ${JSON.stringify(toUserNotification(notification))}\n\n`);
    this.#position = position;
  }

  /** Sends a comment to an idle client, ends a stream that is too old, and disconnects a client that reads nothing. */
  heartbeat({ ageMaxMs }: { readonly ageMaxMs: number }): void {
    const bufferedBytes = this.#response.writableLength;
    const flushedBytes = this.#writtenBytes - bufferedBytes;
    const isStuck = bufferedBytes > 0 && flushedBytes <= this.#flushedBytes;
    this.#flushedBytes = flushedBytes;
    if (isStuck) this.disconnect();
    else if (performance.now() - this.#openedAt > ageMaxMs) void this.end();
    else if (bufferedBytes === 0) this.#write(":\n\n");
  }

  /** Ends the stream after the buffer, with the delay before the client should reconnect. */
  end(): Promise<void> {
    if (this.#isOpen) this.#response.end(`${retryLine()}\n`);
    return this.closed;
  }

  disconnect(): void {
    this.#response.destroy();
  }

  get #isOpen(): boolean {
    return !this.#response.destroyed && !this.#response.writableEnded;
  }

  #write(text: string): void {
    if (!this.#isOpen) return;
    const bytes = Buffer.from(text); // `writableLength` counts the characters of a string, but the bytes of a buffer.
    this.#writtenBytes += bytes.length;
    this.#response.write(bytes);
  }
}

/** Random, so that clients of a stopped process do not reconnect all at once. */
const retryLine = () => `retry: ${Math.round(500 + Math.random() * 2_000)}\n`;
