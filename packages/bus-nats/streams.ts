/**
 * Creates streams when they are first used and never changes them: a stream that an operator has configured differently stays
 * so, and `warnings` names the consequences.
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
import type { Connection } from "./connection.ts";
import type { Names } from "./names.ts";

export interface StreamDefaults {
  /** How long events are kept for replay. The inbox keeps its keys for longer. */
  readonly maxAgeMs: number;
  /** How long the server detects a second copy of an event. */
  readonly duplicateWindowMs: number;
  /** Copies in a cluster; 3 survive the loss of a server. */
  readonly replicas: number;
  /** The size at which the stream refuses events: publishers retry, and no unread event is dropped. -1 is no limit. */
  readonly maxBytes: number;
}

export const streamDefaults: StreamDefaults = {
  maxAgeMs: 7 * 24 * 3_600_000,
  duplicateWindowMs: 10 * 60_000,
  replicas: 1,
  maxBytes: -1,
};

/** The server's error code for a stream that exists with other settings. */
const nameInUse = 10058;

const hasErrorCode = (error: unknown, code: number) => error instanceof JetStreamApiError && error.code === code;

export class Streams {
  readonly #connection: Connection;
  readonly #names: Names;
  readonly #defaults: StreamDefaults;
  /** Streams that existed when the server was last asked. */
  readonly #existing = new Set<string>();

  constructor({ connection, names, defaults }: { connection: Connection; names: Names; defaults: StreamDefaults }) {
    this.#connection = connection;
    this.#names = names;
    this.#defaults = defaults;
  }

  exists(stream: string): boolean {
    return this.#existing.has(stream);
  }

  /** Creates the stream if it does not exist. The server is asked once; see `forget`. */
  async ensure(stream: string): Promise<void> {
    if (this.#existing.has(stream)) return;
    try {
      await this.#create(stream);
    } catch (error) {
      if (!(error instanceof JetStreamApiError)) throw error;
      throw new BusUnavailable(`the stream ${stream} cannot be created: ${error.message}`, { cause: error });
    }
    this.#existing.add(stream);
  }

  /** Called when the server does not know the stream after all. */
  forget(stream: string): void {
    this.#existing.delete(stream);
  }

  /**
   * Several processes may do this at once: the server creates the stream for one of them, and the others learn that it exists.
   */
  async #create(stream: string): Promise<void> {
    try {
      await this.#connection.request((manager) => manager.streams.info(stream));
      return;
    } catch (error) {
      if (!hasErrorCode(error, JetStreamApiCodes.StreamNotFound)) throw error;
    }
    try {
      await this.#connection.request((manager) => manager.streams.add(this.#config(stream)));
    } catch (error) {
      if (!hasErrorCode(error, nameInUse)) throw error;
    }
  }

  #config(stream: string) {
    return {
      name: stream,
      subjects: [this.#names.streamSubjects(stream)],
      storage: StorageType.File,
      // Neither interest nor work queue: only stored events can be replayed and deduplicated.
      retention: RetentionPolicy.Limits,
      // A full stream refuses, and the outbox keeps the event. "Old" would drop unread events.
      discard: DiscardPolicy.New,
      max_age: nanos(this.#defaults.maxAgeMs),
      max_bytes: this.#defaults.maxBytes,
      duplicate_window: nanos(this.#defaults.duplicateWindowMs),
      num_replicas: this.#defaults.replicas,
      deny_delete: true,
      deny_purge: true,
    };
  }

  /** Describes settings that weaken a guarantee, for all streams of this namespace. */
  async warnings(): Promise<string[]> {
    const warnings: string[] = [];
    await this.#connection.request(async (manager) => {
      for await (const { config } of manager.streams.list()) {
        if (!this.#names.isOurs(config.name)) continue;
        if (!config.subjects?.includes(this.#names.streamSubjects(config.name))) continue;
        warnings.push(...findWeaknesses(config, this.#defaults));
      }
    });
    return warnings;
  }
}

function findWeaknesses(config: StreamConfig, defaults: StreamDefaults): string[] {
  const edit = `nats stream edit ${config.name}`;
  const checks: [isWeak: boolean, warning: string][] = [
    [config.storage !== StorageType.File, `keeps its events in memory: create it again with file storage.`],
    [
      config.retention !== RetentionPolicy.Limits,
      `drops events once they are read: create it again with retention "limits".`,
    ],
    [config.discard !== DiscardPolicy.New, `drops unread events when it is full: ${edit} --discard new.`],
    [config.no_ack === true, `does not confirm what it stores: create it again with acknowledgements.`],
    [
      isShorter(config.max_age, defaults.maxAgeMs),
      `drops events sooner than configured: ${edit} --max-age ${defaults.maxAgeMs}ms.`,
    ],
    [
      config.max_age === 0 || config.max_age > nanos(defaults.maxAgeMs),
      `keeps events longer than configured, and so maybe longer than an inbox keeps their keys: ${edit} --max-age ${defaults.maxAgeMs}ms.`,
    ],
    [
      isShorter(config.duplicate_window, defaults.duplicateWindowMs),
      `detects duplicates for less time than configured: ${edit} --dupe-window ${defaults.duplicateWindowMs}ms.`,
    ],
    [
      config.max_msgs_per_subject > 0,
      `keeps a limited number of events per subject: ${edit} --max-msgs-per-subject=-1.`,
    ],
    [
      config.num_replicas < defaults.replicas,
      `has fewer copies than configured: ${edit} --replicas ${defaults.replicas}.`,
    ],
    [!config.deny_delete, `lets clients delete single events: create it again with --deny-delete.`],
    [!config.deny_purge, `can be purged by clients: create it again with --deny-purge.`],
  ];
  return checks.filter(([isWeak]) => isWeak).map(([, warning]) => `The stream ${config.name} ${warning}`);
}

/** To the server, zero means no limit. */
const isShorter = (actualNanos: number, configuredMs: number): boolean =>
  actualNanos > 0 && actualNanos < nanos(configuredMs);
