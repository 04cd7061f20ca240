/**
 * Errors for events that do not fit their schema. They name the event, the field and the reason in one sentence.
 *
 * `maybeNewerSchema` distinguishes a newer event from a broken one: it is true if this build does not know the event type or
 * one of its fields, as happens during a rolling deploy. A newer process can handle such an event.
 */

interface EventErrorDetails {
  readonly eventType: string;
  /** The path in the schema, such as "players[1].user_id"; absent if the error concerns the whole event. */
  readonly field?: string | undefined;
  readonly reason: string;
  readonly maybeNewerSchema?: boolean;
  readonly cause?: unknown;
}

class EventError extends Error {
  readonly eventType: string;
  readonly field: string | undefined;
  readonly maybeNewerSchema: boolean;

  constructor({ eventType, field, reason, maybeNewerSchema = false, cause }: EventErrorDetails) {
    super(`${field === undefined ? eventType : `${eventType}.${field}`} ${reason}`, { cause });
    this.eventType = eventType;
    this.field = field;
    this.maybeNewerSchema = maybeNewerSchema;
  }
}

export class EventNotEncodable extends EventError {
  override readonly name = "EventNotEncodable";
}

export class EventNotDecodable extends EventError {
  override readonly name = "EventNotDecodable";
}
