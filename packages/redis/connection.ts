/**
 * A connection to Redis for scripts. Every call returns or fails within two seconds.
 *
 * While the server is unavailable, calls fail at once; when it is back, the next call works without a restart. If the server is
 * silent (a dead machine, a firewall that drops packets), the connection is replaced by a new one, where TCP alone would wait
 * for a quarter of an hour. A script without a response may have run.
 */
import { explainConnectionError } from "@todoke/kernel/server-url";
import { backoffMs } from "@todoke/kernel/worker";
import { createClient, ErrorReply } from "redis";
import type { Script, ScriptInput } from "./script.ts";
import { findPrimary } from "./sentinel.ts";
import { parseRedisUrl, type RedisServer, tlsOptions } from "./url.ts";

/** Redis is unavailable or did not respond: the script may or may not have run. */
export class RedisUnavailable extends Error {
  override readonly name = "RedisUnavailable";
  /** The kernel's `isUnavailable` checks it: the response is a 503, and the inbox counts no attempt. */
  readonly code = "ECONNRESET";
}

export interface RedisConnection extends AsyncDisposable {
  run(script: Script, input: ScriptInput): Promise<unknown>;
}

export interface RedisOptions {
  /** The URL of a server, or of Sentinels: url.ts. */
  readonly url: string;
  /** Called when connecting fails or a connection is lost. It is retried; the caller need not act. */
  readonly onError: (error: unknown) => void;
  /** A server that takes longer counts as unavailable. */
  readonly requestTimeoutMs?: number;
}

const reconnectBackoff = { baseMs: 20, capMs: 1_000 };

/** Error replies of a server that cannot serve us now. Any other error reply is a bug of ours. */
const temporaryErrors = /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|OOM|MISCONF|NOREPLICAS) /;

/**
 * Error replies of a server that may have been replaced: one that was demoted keeps its connections for a moment; one that lost its replicas
 * may be cut off from the Sentinels too, which have promoted another one.
 */
const replacedErrors = /^(READONLY|NOREPLICAS) /;

type Client = ReturnType<typeof createClient>;

/** A connection, or the search for its address. */
interface Attempt {
  client?: Client;
  isOver: boolean;
  /** Resolves after the first attempt to connect, also if it failed. */
  readonly attempted: Promise<void>;
}

export function connectRedis({ url: text, onError, requestTimeoutMs = 2_000 }: RedisOptions): RedisConnection {
  const url = parseRedisUrl(text);
  let failures = 0;
  let connection = url.sentinel ? connectToPrimary() : connect(url.servers[0]);

  /** Retries the same address until it is destroyed. */
  function connect(server: RedisServer | undefined): Attempt {
    const attempted = Promise.withResolvers<void>();
    const client = createRedisClient(server, (attempts) => backoffMs(attempts, reconnectBackoff));
    client.on("ready", attempted.resolve);
    client.on("error", (error) => {
      attempted.resolve();
      report(error);
    });
    // Rejects only when the client is destroyed. All other errors are retried and reported above.
    client.connect().catch(() => attempted.resolve());
    return { client, attempted: attempted.promise, isOver: false };
  }

  /** One try with the server that the Sentinels name. After an error they are asked again: it may be another one. */
  function connectToPrimary(): Attempt {
    const attempt: Attempt = { isOver: false, attempted: tryPrimary().catch(fail) };
    return attempt;

    async function tryPrimary(): Promise<void> {
      const server = await findPrimary(url, requestTimeoutMs);
      if (attempt.isOver) return;
      const client = createRedisClient(server, false);
      attempt.client = client;
      client.on("error", fail);
      await client.connect();
      const [role] = (await client.sendCommand(["ROLE"])) as unknown as [string];
      if (role !== "master") throw new Error(`${server.host}:${server.port} is a replica`);
      failures = 0;
    }

    function fail(error: unknown): void {
      if (attempt.isOver) return;
      attempt.isOver = true;
      report(error);
      setTimeout(() => replace(attempt), backoffMs(++failures, reconnectBackoff)).unref();
    }
  }

  function createRedisClient(
    server: RedisServer | undefined,
    reconnectStrategy: false | ((attempts: number) => number),
  ) {
    return createClient({
      ...url.login,
      database: url.database,
      RESP: 2,
      disableOfflineQueue: true,
      socket: {
        ...server,
        ...tlsOptions(url, server?.host ?? ""),
        connectTimeout: requestTimeoutMs,
        reconnectStrategy,
      },
    }) as unknown as Client;
  }

  function report(error: unknown): void {
    const cause = explainConnectionError(error, "Redis", text);
    onError(new Error("the connection to Redis failed; retrying", { cause }));
  }

  function replace(attempt: Attempt): void {
    attempt.isOver = true;
    if (connection === attempt) connection = url.sentinel ? connectToPrimary() : connect(url.servers[0]);
    attempt.client?.destroy();
  }

  async function request(send: (client: Client) => Promise<unknown>): Promise<unknown> {
    const attempt = connection;
    const timeout = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      timeout.reject(new Error(`no answer within ${requestTimeoutMs} ms`));
      replace(attempt);
    }, requestTimeoutMs);
    try {
      // The first call waits for the first attempt to connect. Later calls fail at once while it is retried.
      await Promise.race([attempt.attempted, timeout.promise]);
      if (!attempt.client || (url.sentinel && attempt.isOver)) throw new Error("not connected");
      return await Promise.race([send(attempt.client), timeout.promise]);
    } catch (error) {
      if (error instanceof ErrorReply && !temporaryErrors.test(error.message)) throw error;
      if (url.sentinel && error instanceof ErrorReply && replacedErrors.test(error.message)) replace(attempt);
      throw new RedisUnavailable("Redis is unavailable", { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    async run({ text, sha1 }, input) {
      try {
        return await request((client) => client.evalSha(sha1, input));
      } catch (error) {
        // The server was restarted and does not know the script.
        if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
        return request((client) => client.eval(text, input));
      }
    },
    async [Symbol.asyncDispose]() {
      const last = connection;
      connection = { ...last, isOver: true }; // Nothing replaces it.
      last.isOver = true;
      last.client?.destroy();
    },
  };
}
