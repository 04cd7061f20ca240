/**
 * Outages of databases and buses. Each outage is logged once at its start and once at its end, however many workers fail in
 * between and however many services of this process use it.
 *
 * An error may also be about one connection or one statement. So the server is asked first: if it responds, the error is logged as
 * it is; if not, it is an outage, and further errors are only counted until it responds again.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { BusUnavailable } from "@todoke/kernel/bus";
import { isUnavailable } from "@todoke/kernel/db";
import { withTimeout } from "@todoke/kernel/worker";

export interface OutageOptions {
  readonly url: string;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  /** Resolves if the server responds. */
  readonly probe: () => Promise<unknown>;
  /** Logs an error that is no outage. */
  readonly onError: (error: unknown) => void;
}

/** The state of one server, as one service sees it. */
export interface OutageWatch extends Disposable {
  readonly isDown: boolean;
  /** For errors that no caller awaits, also those that are no outage. */
  onError(error: unknown): void;
}

const byUrl = new Map<string, Outage>();

/** Watches a server together with all other services of the process that use it. */
export function watchOutages(options: OutageOptions): OutageWatch {
  const outage = byUrl.get(options.url) ?? new Outage(describe(options.url));
  byUrl.set(options.url, outage);
  outage.users.add(options);
  return {
    get isDown() {
      return outage.isDown;
    },
    onError(error) {
      if (isMaybeOutage(error)) outage.report(error, options);
      else options.onError(error);
    },
    [Symbol.dispose]() {
      outage.users.delete(options);
      if (outage.users.size === 0) byUrl.delete(options.url);
    },
  };
}

function isMaybeOutage(error: unknown): boolean {
  if (error instanceof BusUnavailable || isUnavailable(error)) return true;
  return error instanceof Error && error.cause !== undefined && isMaybeOutage(error.cause);
}

const probeMaxMs = 2_000;
const probeEveryMs = 500;
/** An error that began before the end of an outage may be reported after it. */
const lateReportMs = 5_000;
/** Errors of one moment. A server that responds while more than these fail has a problem that one of them explains. */
const pendingMax = 20;

class Outage {
  readonly users = new Set<OutageOptions>();
  readonly #name: string;
  /** By the error, so that one of a connection that several services share is logged once. */
  #pending = new Map<unknown, () => unknown>();
  #isWatching = false;
  #isDown = false;
  #endedAt = Number.NEGATIVE_INFINITY;

  constructor(name: string) {
    this.#name = name;
  }

  get isDown(): boolean {
    return this.#isDown;
  }

  report(error: unknown, { onError, log }: OutageOptions): void {
    if (this.#isDown || this.#pending.has(error) || this.#pending.size >= pendingMax) return;
    const isLate = performance.now() - this.#endedAt < lateReportMs;
    this.#pending.set(error, () => isLate || onError(error));
    if (this.#isWatching) return;
    this.#isWatching = true;
    void this.#watch(error, log).finally(() => {
      this.#isWatching = false;
      this.#pending.clear();
    });
  }

  /** `log` is that of the service that noticed it. */
  async #watch(error: unknown, log: OutageOptions["log"]): Promise<void> {
    if (await this.#responds()) {
      for (const logIt of this.#pending.values()) logIt();
      return;
    }
    if (this.users.size === 0) return; // All services have stopped meanwhile.
    const since = performance.now();
    this.#isDown = true;
    log.warn({ err: error }, `${this.#name} is unavailable; this is logged once, and again when it is back`);
    while (this.users.size > 0 && !(await this.#responds())) await sleep(probeEveryMs, undefined, { ref: false });
    this.#isDown = false;
    this.#endedAt = performance.now();
    const seconds = Math.round((this.#endedAt - since) / 1_000);
    if (this.users.size > 0) log.info({ seconds }, `${this.#name} is available again after ${seconds} s`);
  }

  async #responds(): Promise<boolean> {
    const [user] = this.users;
    if (!user) return false;
    return withTimeout(probeMaxMs, Promise.try(user.probe)).then(
      () => true,
      () => false,
    );
  }
}

const engines: Readonly<Record<string, string>> = { nats: "NATS", tls: "NATS", amqp: "RabbitMQ", amqps: "RabbitMQ" };

/** Without credentials and options: "NATS at bus.example:4222". */
function describe(url: string): string {
  const [, scheme = "", rest = ""] = /^([a-z]+):\/\/([^?]*)/.exec(url) ?? [];
  return `${engines[scheme] ?? "PostgreSQL"} at ${rest.replaceAll(/[^,/@]*@/g, "")}`;
}
