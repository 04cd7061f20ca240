/** The running parts of a process that the declarations of a service are wired to. */
import type { HttpApp } from "@todoke/http";
import type { TransactionalPublisher } from "@todoke/kernel/bus";
import type { Db } from "@todoke/kernel/db";
import type { Wakeups } from "@todoke/kernel/worker";
import type { ServiceBus } from "./buses.ts";
import type { WorkerOverrides } from "./worker-settings.ts";

export interface Runtime {
  /** The name of the service. */
  readonly name: string;
  readonly db: Db;
  readonly buses: readonly ServiceBus[];
  /** Set if the service publishes to one bus only, which is in its database. */
  readonly publisher: TransactionalPublisher | undefined;
  readonly wakeups: Wakeups;
  readonly workers: Readonly<Record<string, WorkerOverrides>>;
  hasRole(role: string): boolean;
  /** Registers /debug/ routes: on the ops listener, and under `todoke dev` on the service's own port too. */
  debug(routes: (app: HttpApp) => void): void;
  /** Disposes the part when the service stops, in reverse order. */
  use<T extends AsyncDisposable>(part: T): T;
  /** Logs an error that no caller awaits. */
  onError(error: unknown): void;
  /** The topic that wakes the workers of one of the service's tables. */
  topicOf(table: string): string;
  /** For events that are not appended by `outbox`. */
  wakeRelay(): void;
}
