/**
 * What is thrown when an event and its schema disagree. Both say of which event and field, and why, in one sentence.
 *
 * `perhapsNewer` tells the two causes apart. False: it is wrong, and will be wrong tomorrow. True: this build does not
 * know the event's type or one of its fields, as happens while a newer release is rolled out; a newer process will.
 */

interface Fault {
  readonly eventType: string;
  /** Its name in the schema; absent when the fault is the event's as a whole. */
  readonly field?: string | undefined;
  readonly why: string;
  readonly perhapsNewer?: boolean;
  readonly cause?: unknown;
}

class EventFault extends Error {
  readonly eventType: string;
  readonly field: string | undefined;
  readonly perhapsNewer: boolean;

  constructor(fault: Fault) {
    const { eventType, field, why, perhapsNewer = false, cause } = fault;
    super(`${field === undefined ? eventType : `${eventType}.${field}`} ${why}`, { cause });
    this.eventType = eventType;
    this.field = field;
    this.perhapsNewer = perhapsNewer;
  }
}

export class EventNotEncodable extends EventFault {
  override readonly name = "EventNotEncodable";
}

export class EventNotDecodable extends EventFault {
  override readonly name = "EventNotDecodable";
}
