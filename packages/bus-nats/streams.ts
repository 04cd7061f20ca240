/**
 * Streams, made when somebody first publishes to them or subscribes, and never changed: a stream that an operator has
 * set up otherwise stays so, and `warnings` says what that costs.
 */
import {
  DiscardPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/nats-core";
import { BusUnavailable } from "@todoke/kernel/bus";
import type { Link } from "./link.ts";
import type { Names } from "./names.ts";

export interface StreamDefaults {
  /** How long an event can be replayed. The inbox remembers for longer than this. */
  readonly maxAgeMs: number;
  /** How long a second copy of an event is told from a new one. */
  readonly duplicateWindowMs: number;
  /** Copies in a cluster; 3 survives the loss of a server. */
  readonly replicas: number;
  /** The size at which the stream takes no more: publishers wait, and nothing unread is thrown away. -1 is no limit. */
  readonly maxBytes: number;
}

export const streamDefaults: StreamDefaults = {
  maxAgeMs: 7 * 24 * 3_600_000,
  duplicateWindowMs: 10 * 60_000,
  replicas: 1,
  maxBytes: -1,
};

/** The server's word for a stream that is there with other settings. */
const nameInUse = 10058;

const isRefusal = (error: unknown, code: number) => error instanceof JetStreamApiError && error.code === code;

export class Streams {
  readonly #link: Link;
  readonly #names: Names;
  readonly #wanted: StreamDefaults;
  /** Streams that were there when we last looked. */
  readonly #there = new Set<string>();

  constructor({ link, names, wanted }: { link: Link; names: Names; wanted: StreamDefaults }) {
    this.#link = link;
    this.#names = names;
    this.#wanted = wanted;
  }

  isThere(stream: string): boolean {
    return this.#there.has(stream);
  }

  /** Makes the stream unless it is there. The server is asked once; see `forget`. */
  async ensure(stream: string): Promise<void> {
    if (this.#there.has(stream)) return;
    try {
      await this.#make(stream);
    } catch (error) {
      if (!(error instanceof JetStreamApiError)) throw error;
      throw new BusUnavailable(`the stream ${stream} cannot be made: ${error.message}`, { cause: error });
    }
    this.#there.add(stream);
  }

  /** The server said that it does not have it after all. */
  forget(stream: string): void {
    this.#there.delete(stream);
  }

  /** Many processes may come here at once: the server makes the stream for one of them and tells the others. */
  async #make(stream: string): Promise<void> {
    try {
      await this.#link.ask((manager) => manager.streams.info(stream));
      return;
    } catch (error) {
      if (!isRefusal(error, JetStreamApiCodes.StreamNotFound)) throw error;
    }
    try {
      await this.#link.ask((manager) => manager.streams.add(this.#configOf(stream)));
    } catch (error) {
      if (!isRefusal(error, nameInUse)) throw error;
    }
  }

  #configOf(stream: string) {
    return {
      name: stream,
      subjects: [this.#names.subjectsOf(stream)],
      storage: StorageType.File,
      // Not by interest and not as a work queue: only what is kept can be replayed, and told from a duplicate.
      retention: RetentionPolicy.Limits,
      // A full stream refuses; the outbox keeps the event. "Old" would throw away what nobody has read yet.
      discard: DiscardPolicy.New,
      max_age: nanos(this.#wanted.maxAgeMs),
      max_bytes: this.#wanted.maxBytes,
      duplicate_window: nanos(this.#wanted.duplicateWindowMs),
      num_replicas: this.#wanted.replicas,
      deny_delete: true,
      deny_purge: true,
    };
  }

  /** What of the streams on the server weakens a promise. Looks at all of this place, used by this process or not. */
  async warnings(): Promise<string[]> {
    const warnings: string[] = [];
    await this.#link.ask(async (manager) => {
      for await (const { config } of manager.streams.list()) {
        if (!this.#names.isOurs(config.name)) continue;
        if (!config.subjects?.includes(this.#names.subjectsOf(config.name))) continue;
        warnings.push(...weaknesses(config, this.#wanted));
      }
    });
    return warnings;
  }
}

function weaknesses(config: StreamConfig, wanted: StreamDefaults): string[] {
  const edit = `nats stream edit ${config.name}`;
  const faults: [isWeak: boolean, warning: string][] = [
    [config.storage !== StorageType.File, `keeps its events in memory: make it again with file storage.`],
    [
      config.retention !== RetentionPolicy.Limits,
      `drops events once they are read: make it again with retention "limits".`,
    ],
    [config.discard !== DiscardPolicy.New, `throws away unread events when it is full: ${edit} --discard new.`],
    [config.no_ack === true, `does not confirm what it stores: make it again with acknowledgements.`],
    [
      isShorter(config.max_age, wanted.maxAgeMs),
      `forgets events sooner than asked: ${edit} --max-age ${wanted.maxAgeMs}ms.`,
    ],
    [
      config.max_age === 0 || config.max_age > nanos(wanted.maxAgeMs),
      `keeps events longer than asked, when an inbox may have forgotten them: ${edit} --max-age ${wanted.maxAgeMs}ms.`,
    ],
    [
      isShorter(config.duplicate_window, wanted.duplicateWindowMs),
      `tells duplicates for less time than asked: ${edit} --dupe-window ${wanted.duplicateWindowMs}ms.`,
    ],
    [config.max_msgs_per_subject > 0, `keeps only so many events per subject: ${edit} --max-msgs-per-subject=-1.`],
    [config.num_replicas < wanted.replicas, `has fewer copies than asked: ${edit} --replicas ${wanted.replicas}.`],
    [!config.deny_delete, `lets anybody delete single events: make it again with --deny-delete.`],
    [!config.deny_purge, `can be emptied by anybody: make it again with --deny-purge.`],
  ];
  return faults.filter(([isWeak]) => isWeak).map(([, warning]) => `The stream ${config.name} ${warning}`);
}

/** Zero means "for ever" to the server. */
const isShorter = (actualNanos: number, wantedMs: number): boolean => actualNanos > 0 && actualNanos < nanos(wantedMs);
