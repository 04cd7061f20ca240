/**
 * Tells workers that there is something to do, so that nobody waits for the next poll.
 *
 * A wake-up is a hint: losing one costs latency and nothing else, for the poll is the guarantee. It is never sent inside
 * a business transaction, where NOTIFY makes every commit of the whole cluster wait for its turn. The process that
 * committed wakes its own workers directly and tells the others by NOTIFY, at most once per topic in `everyMs`.
 */
import pg from "pg";
import type { Queryable } from "../db/index.ts";

export interface Wakeups extends AsyncDisposable {
  /** Calls `wake` at every signal for `topic`, and whenever signals may have been missed. Returns how to stop. */
  on(topic: string, wake: () => void): () => void;
  /** To be called after the commit. */
  signal(topic: string): void;
  /** Resolves when signals of other processes can be heard. */
  readonly listening: Promise<void>;
}

export interface WakeupsOptions {
  readonly url: string;
  /** Ten milliseconds cost nothing that can be measured (docs/adr/0005), fifty can be felt. */
  readonly everyMs?: number;
  readonly onError?: (error: unknown) => void;
}

const channel = "todoke_wakeups";

/** For a process that has no workers of its own and soon ends: wakes those of all others. To be called after the commit. */
export async function wakeOthers(db: Queryable, topic: string): Promise<void> {
  await db.query(`select pg_notify('${channel}', $1)`, [topic]);
}

const pingEveryMs = 10_000;
const reconnectMaxMs = 5_000;

export function openWakeups({ url, everyMs = 10, onError }: WakeupsOptions): Wakeups {
  const workers = new Map<string, Set<() => void>>();
  const sentAt = new Map<string, number>();
  const due = new Map<string, NodeJS.Timeout>();
  const listening = Promise.withResolvers<void>();
  listening.promise.catch(() => {});
  let client: pg.Client | undefined;
  let failures = 0;
  let reconnect: NodeJS.Timeout | undefined;
  let ping: NodeJS.Timeout | undefined;
  let closed = false;
  let lastSaid: Promise<unknown> = Promise.resolve();

  const wakeLocal = (topic: string) => workers.get(topic)?.forEach((wake) => void wake());
  const wakeAll = () => workers.forEach((set) => void set.forEach((wake) => void wake()));

  async function connect(): Promise<void> {
    const fresh = new pg.Client({
      connectionString: url,
      application_name: "todoke wakeups",
      keepAlive: true,
      options: "-c synchronous_commit=off", // A hint need not reach the disk before it is given.
      query_timeout: 5_000,
      connectionTimeoutMillis: 5_000,
    });
    fresh.on("error", (error) => lost(fresh, error));
    fresh.on("end", () => lost(fresh, new Error("the wake-up connection ended")));
    fresh.on("notification", (message) => {
      const ours = message.processId === (fresh as unknown as { processID: number }).processID;
      if (!ours && message.payload) wakeLocal(message.payload);
    });
    try {
      await fresh.connect();
      await fresh.query(`listen ${channel}`);
    } catch (error) {
      return lost(fresh, error);
    }
    if (closed) return void fresh.end().catch(() => {});
    client = fresh;
    failures = 0;
    listening.resolve();
    wakeAll(); // What was signalled while nobody listened is found now.
    // A connection that is dead without saying so (a black hole) is found by asking.
    ping = setInterval(() => tell(fresh, "select 1"), pingEveryMs);
    ping.unref();
  }

  const given = new WeakSet<pg.Client>();

  function lost(which: pg.Client, error: unknown): void {
    if (given.has(which)) return;
    given.add(which);
    if (client === which) client = undefined;
    clearInterval(ping);
    void which.end().catch(() => {});
    if (closed) return;
    onError?.(error);
    const inMs = Math.min(reconnectMaxMs, 100 * 2 ** failures++) * (0.5 + Math.random());
    reconnect = setTimeout(() => void connect(), inMs);
    reconnect.unref();
  }

  function tellOthers(topic: string): void {
    if (due.has(topic)) return;
    const sinceMs = performance.now() - (sentAt.get(topic) ?? -Infinity);
    if (sinceMs >= everyMs) {
      notify(topic);
      return;
    }
    const timer = setTimeout(() => {
      due.delete(topic);
      notify(topic);
    }, everyMs - sinceMs);
    timer.unref();
    due.set(topic, timer);
  }

  function notify(topic: string): void {
    sentAt.set(topic, performance.now());
    if (client) tell(client, `select pg_notify('${channel}', $1)`, [topic]);
  }

  /** One after the other: a connection takes one statement at a time. */
  function tell(via: pg.Client, text: string, values: string[] = []): void {
    lastSaid = lastSaid
      .then(() => (client === via ? via.query(text, values) : undefined))
      .catch((error) => lost(via, error));
  }

  void connect();

  return {
    listening: listening.promise,
    on(topic, wake) {
      const set = workers.get(topic) ?? new Set();
      workers.set(topic, set.add(wake));
      return () => void set.delete(wake);
    },
    signal(topic) {
      wakeLocal(topic);
      tellOthers(topic);
    },
    async [Symbol.asyncDispose]() {
      closed = true;
      listening.reject(new Error("closed"));
      clearTimeout(reconnect);
      clearInterval(ping);
      for (const timer of due.values()) clearTimeout(timer);
      await client?.end().catch(() => {});
    },
  };
}
