/**
 * A connection to Redis for scripts, that answers or fails within two seconds, whatever becomes of the server.
 *
 * While the server is away every call fails at once, and once it is back the next one works, without a restart. A server
 * that is silent (its machine gone, a firewall that drops what it sees) is taken for away: the connection is given up for
 * a new one, where TCP alone would wait for a quarter of an hour. What was sent and not answered may have been done.
 */
import { createClient, ErrorReply } from "redis";
import type { Script, ScriptInput } from "./script.ts";

/** Redis cannot be asked just now, or did not answer: what was sent may have been done or not. */
export class RedisUnavailable extends Error {
  override readonly name = "RedisUnavailable";
  /** By this the kernel's `isUnavailable` knows it: a 503, and in the inbox nothing that counts against an event. */
  readonly code = "ECONNRESET";
}

export interface RedisLink extends AsyncDisposable {
  run(script: Script, input: ScriptInput): Promise<unknown>;
}

export interface RedisLinkOptions {
  readonly url: string;
  /** Hears of connections that were lost or not to be had. They are tried again; nothing else needs doing. */
  readonly onError: (error: unknown) => void;
  /** A server that takes longer is as good as away. */
  readonly answerWithinMs?: number;
}

const againMaxMs = 1_000;

/** Answers of a server that works, but not for us and not now. Any other error that it answers with is a fault of ours. */
const notNow = /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|OOM|MISCONF|NOREPLICAS) /;

export function openRedisLink({ url, onError, answerWithinMs = 2_000 }: RedisLinkOptions): RedisLink {
  let connection = connect();
  let closed = false;

  function connect() {
    const client = createClient({
      url,
      RESP: 2,
      disableOfflineQueue: true,
      socket: {
        connectTimeout: answerWithinMs,
        reconnectStrategy: (tries) => Math.min(againMaxMs, 20 * 2 ** Math.min(tries, 10)) * (0.5 + Math.random()),
      },
    });
    const tried = Promise.withResolvers<void>();
    client.on("ready", tried.resolve);
    client.on("error", (error) => {
      tried.resolve();
      onError(new Error("the connection to Redis failed, and is tried again", { cause: error }));
    });
    // It ends when there is a connection, or when it is given up for another, whose errors are told then.
    client.connect().catch(() => tried.resolve());
    return { client, tried: tried.promise };
  }

  async function ask(send: (client: typeof connection.client) => Promise<unknown>): Promise<unknown> {
    const { client, tried } = connection;
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      late.reject(new Error(`no answer within ${answerWithinMs} ms`));
      if (connection.client === client && !closed) connection = connect();
      client.destroy();
    }, answerWithinMs);
    try {
      // Who comes first waits for the connection to be tried. While it is tried again and again, nobody does.
      await Promise.race([tried, late.promise]);
      return await Promise.race([send(client), late.promise]);
    } catch (error) {
      if (error instanceof ErrorReply && !notNow.test(error.message)) throw error;
      throw new RedisUnavailable("Redis cannot be asked just now", { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    async run({ text, sha1 }, input) {
      try {
        return await ask((client) => client.evalSha(sha1, input));
      } catch (error) {
        // A server that was started anew does not know the script yet.
        if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
        return ask((client) => client.eval(text, input));
      }
    },
    async [Symbol.asyncDispose]() {
      closed = true;
      connection.client.destroy();
    },
  };
}
