/**
 * One client's stream of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
 *
 * Every event carries its position as `id`, and the first thing sent is where the stream begins: a client that comes back
 * with the last id it saw goes on exactly there, also when nothing had come yet. What waits for a slow client is bounded:
 * nothing more is read for it until there is room, and one that takes nothing at all is cut.
 */
import type { ServerResponse } from "node:http";
import type { NewNotification, Position } from "../store/new-notifications.ts";
import { toUserNotification } from "./user-notification.ts";

export interface StreamStart {
  readonly userId: string;
  readonly position: Position;
  /** The client came with a position that is not of this database: it has to list the inbox anew. */
  readonly isReset: boolean;
}

// A page of notifications fits; more than this never waits for one client, but for the page that was on its way.
const waitingMaxBytes = 64 * 1_024;

export class InboxStream {
  readonly userId: string;
  /** Resolves when it is over, whoever ended it. */
  readonly closed: Promise<void>;
  readonly #response: ServerResponse;
  readonly #openedAt = performance.now();
  #position: Position;
  #givenBytes = 0;
  #takenBytes = -1;

  constructor({ userId, position, isReset }: StreamStart, response: ServerResponse) {
    this.userId = userId;
    this.#position = position;
    this.#response = response;
    this.closed = new Promise((resolve) => response.once("close", resolve));
    this.#give(`${retryLine()}id: ${position}\n${isReset ? "event: reset\ndata: {}\n" : ""}\n`);
  }

  /** What the client has been given, to the last row. */
  get position(): Position {
    return this.#position;
  }

  /** Whether more may be read for it. */
  get hasRoom(): boolean {
    return this.#response.writableLength < waitingMaxBytes;
  }

  send(news: NewNotification): void {
    const { position } = news;
    this.#give(`id: ${position}\nevent: notification\ndata: ${JSON.stringify(toUserNotification(news))}\n\n`);
    this.#position = position;
  }

  /** Now and then: shows the client, and whatever stands between, that the stream lives; ends what should not go on. */
  beat({ ageMaxMs }: { readonly ageMaxMs: number }): void {
    const waitingBytes = this.#response.writableLength;
    const takenBytes = this.#givenBytes - waitingBytes;
    const isStuck = waitingBytes > 0 && takenBytes <= this.#takenBytes;
    this.#takenBytes = takenBytes;
    if (isStuck) this.cut();
    else if (performance.now() - this.#openedAt > ageMaxMs) void this.end();
    else if (waitingBytes === 0) this.#give(":\n\n");
  }

  /** In order: the client gets all that it was given, and when to come back. */
  end(): Promise<void> {
    if (this.#isOpen) this.#response.end(`${retryLine()}\n`);
    return this.closed;
  }

  cut(): void {
    this.#response.destroy();
  }

  get #isOpen(): boolean {
    return !this.#response.destroyed && !this.#response.writableEnded;
  }

  #give(text: string): void {
    if (!this.#isOpen) return;
    const bytes = Buffer.from(text); // Of text, Node would count the characters that wait, not the bytes.
    this.#givenBytes += bytes.length;
    this.#response.write(bytes);
  }
}

/** When to come back: not all at once, for they may all have been sent away at once. */
const retryLine = () => `retry: ${Math.round(500 + Math.random() * 2_000)}\n`;
