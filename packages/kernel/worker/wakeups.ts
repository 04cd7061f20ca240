/**
 * Wake-ups: hints to poll now, so that workers do not wait for their next poll.
 *
 * Losing a wake-up costs latency only, because the poll finds the work too. A wake-up is never sent inside a business
 * transaction, where NOTIFY would serialize the commits of the whole cluster. After its commit a process wakes its own
 * workers directly and notifies other processes, at most once per topic in `intervalMs`.
 */
import type pg from "pg";
import { clientClass, directUrlOf, type Queryable } from "../db/index.ts";
import { backoffMs } from "./backoff.ts";

export interface Wakeups extends AsyncDisposable {
  /** Calls `wake` at every signal for `topic`, and whenever signals may have been missed. Returns the unsubscribe function. */
  on(topic: string, wake: () => void): () => void;
  /** Wakes the workers of a topic. Call it after the commit. */
  signal(topic: string): void;
  /** Resolves when signals of other processes can be received. */
  readonly listening: Promise<void>;
}

export interface WakeupsOptions {
  /** If it names a pooler only, where LISTEN does not work, other processes are not woken: they find the work by polling. */
  readonly url: string;
  /** 10 ms add no measurable load (docs/adr/0005); 50 ms add noticeable latency. */
  readonly intervalMs?: number;
  readonly onError?: (error: unknown) => void;
}

const channel = "todoke_wakeups";
const notifySql = `select pg_notify('${channel}', $1)`;

/** Wakes the workers of all processes, for a short-lived process without workers of its own. Call it after the commit. */
export async function notifyTopic(db: Queryable, topic: string): Promise<void> {
  await db.query(notifySql, [topic]);
}

const pingIntervalMs = 10_000;
const reconnectBackoff = { baseMs: 50, capMs: 5_000 };

/** Opens the connection that sends and receives wake-ups. It reconnects on its own. */
export function openWakeups({ url, intervalMs = 10, onError }: WakeupsOptions): Wakeups {
  const subscribers = new Map<string, Set<() => void>>();
  const notifiedAt = new Map<string, number>();
  const scheduled = new Map<string, NodeJS.Timeout>();
  const listening = Promise.withResolvers<void>();
  listening.promise.catch(() => {});
  let client: pg.Client | undefined;
  let failures = 0;
  let reconnect: NodeJS.Timeout | undefined;
  let ping: NodeJS.Timeout | undefined;
  let closed = false;
  let lastQuery: Promise<unknown> = Promise.resolve();

  const wakeLocal = (topic: string) => subscribers.get(topic)?.forEach((wake) => void wake());
  const wakeAll = () => subscribers.forEach((set) => void set.forEach((wake) => void wake()));

  const directUrl = directUrlOf(url);
  const Client = directUrl === undefined ? undefined : clientClass(directUrl);

  async function connect(): Promise<void> {
    if (!Client) return;
    const opened = new Client({
      application_name: "todoke wakeups",
      keepAlive: true,
      options: "-c synchronous_commit=off", // A hint need not be durable.
      query_timeout: 5_000,
      connectionTimeoutMillis: 5_000,
    });
    opened.on("error", (error) => lost(opened, error));
    opened.on("end", () => lost(opened, new Error("the wake-up connection ended")));
    opened.on("notification", (message) => {
      const isOwn = message.processId === (opened as unknown as { processID: number }).processID;
      if (!isOwn && message.payload) wakeLocal(message.payload);
    });
    try {
      await opened.connect();
      await opened.query(`listen ${channel}`);
    } catch (error) {
      return lost(opened, error);
    }
    if (closed) return void opened.end().catch(() => {});
    client = opened;
    failures = 0;
    listening.resolve();
    wakeAll(); // Signals may have been missed while disconnected.
    // Detects a connection that is dead without an error, as behind a firewall that drops packets.
    ping = setInterval(() => send(opened, "select 1"), pingIntervalMs);
    ping.unref();
  }

  const lostClients = new WeakSet<pg.Client>();

  function lost(which: pg.Client, error: unknown): void {
    if (lostClients.has(which)) return;
    lostClients.add(which);
    if (client === which) client = undefined;
    clearInterval(ping);
    void which.end().catch(() => {});
    if (closed) return;
    onError?.(error);
    reconnect = setTimeout(() => void connect(), backoffMs(++failures, reconnectBackoff));
    reconnect.unref();
  }

  function notifyThrottled(topic: string): void {
    if (scheduled.has(topic)) return;
    const sinceMs = performance.now() - (notifiedAt.get(topic) ?? -Infinity);
    if (sinceMs >= intervalMs) {
      notify(topic);
      return;
    }
    const timer = setTimeout(() => {
      scheduled.delete(topic);
      notify(topic);
    }, intervalMs - sinceMs);
    timer.unref();
    scheduled.set(topic, timer);
  }

  function notify(topic: string): void {
    notifiedAt.set(topic, performance.now());
    if (client) send(client, notifySql, [topic]);
  }

  /** One after the other: a connection runs one statement at a time. */
  function send(via: pg.Client, sql: string, values: string[] = []): void {
    lastQuery = lastQuery
      .then(() => (client === via ? via.query(sql, values) : undefined))
      .catch((error) => lost(via, error));
  }

  void connect();

  return {
    listening: listening.promise,
    on(topic, wake) {
      const set = subscribers.get(topic) ?? new Set();
      subscribers.set(topic, set.add(wake));
      return () => void set.delete(wake);
    },
    signal(topic) {
      wakeLocal(topic);
      notifyThrottled(topic);
    },
    async [Symbol.asyncDispose]() {
      closed = true;
      listening.reject(new Error("closed"));
      clearTimeout(reconnect);
      clearInterval(ping);
      for (const timer of scheduled.values()) clearTimeout(timer);
      await client?.end().catch(() => {});
    },
  };
}
