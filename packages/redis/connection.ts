/**
 * A connection to Redis for scripts. Every call returns or fails within two seconds.
 *
 * While the server is unavailable, calls fail at once; when it is back, the next call works without a restart. If the server is
 * silent (a dead machine, a firewall that drops packets), the connection is replaced by a new one, where TCP alone would wait
 * for a quarter of an hour. A script without a response may have run.
 */
import { backoffMs } from "@todoke/kernel/worker";
import { createClient, ErrorReply } from "redis";
import type { Script, ScriptInput } from "./script.ts";

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
  readonly url: string;
  /** Called when connecting fails or a connection is lost. It is retried; the caller need not act. */
  readonly onError: (error: unknown) => void;
  /** A server that takes longer counts as unavailable. */
  readonly requestTimeoutMs?: number;
}

const reconnectBackoff = { baseMs: 20, capMs: 1_000 };

/** Error replies of a server that cannot serve us now. Any other error reply is a bug of ours. */
const temporaryErrors = /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|OOM|MISCONF|NOREPLICAS) /;

export function connectRedis({ url, onError, requestTimeoutMs = 2_000 }: RedisOptions): RedisConnection {
  let connection = connect();
  let closed = false;

  function connect() {
    const client = createClient({
      url,
      RESP: 2,
      disableOfflineQueue: true,
      socket: {
        connectTimeout: requestTimeoutMs,
        reconnectStrategy: (attempts) => backoffMs(attempts, reconnectBackoff),
      },
    });
    const attempted = Promise.withResolvers<void>();
    client.on("ready", attempted.resolve);
    client.on("error", (error) => {
      attempted.resolve();
      onError(new Error("the connection to Redis failed; retrying", { cause: error }));
    });
    // Rejects only when the client is destroyed. All other errors are retried and reported above.
    client.connect().catch(() => attempted.resolve());
    return { client, attempted: attempted.promise };
  }

  async function request(send: (client: typeof connection.client) => Promise<unknown>): Promise<unknown> {
    const { client, attempted } = connection;
    const timeout = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      timeout.reject(new Error(`no answer within ${requestTimeoutMs} ms`));
      if (connection.client === client && !closed) connection = connect();
      client.destroy();
    }, requestTimeoutMs);
    try {
      // The first call waits for the first attempt to connect. Later calls fail at once while it is retried.
      await Promise.race([attempted, timeout.promise]);
      return await Promise.race([send(client), timeout.promise]);
    } catch (error) {
      if (error instanceof ErrorReply && !temporaryErrors.test(error.message)) throw error;
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
      closed = true;
      connection.client.destroy();
    },
  };
}
