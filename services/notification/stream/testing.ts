/** For tests: processes that serve user inboxes, and clients that are disconnected and reconnect. */
import { hash } from "node:crypto";
import {
  bearerAuthentication,
  buildHttpApp,
  fixedKeys,
  newSigningKey,
  openSigner,
  publicPartOf,
  type Scope,
  tokenVerifier,
} from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { until } from "@todoke/kernel/testing";
import { openWakeups } from "@todoke/kernel/worker";
import { serve } from "@todoke/service";
import { userInboxRoutes } from "../routes/user-inbox.ts";
import type { UserNotification } from "../store/new-notifications.ts";
import { type InboxStreamsOptions, openInboxStreams } from "../workers/inbox-streams.ts";

const topic = "notification.notifications";

const gatewayKey = newSigningKey("k1");
export const { tokenFor } = openSigner({ issuer: "gateway-bff", key: gatewayKey });

const apiKey = (holder: string, scope: Scope) => ({
  holder,
  scopes: [scope],
  sha256: hash("sha256", `tdk_${holder}`, "hex"),
});
export const readingKey = { authorization: "Bearer tdk_reader" };
export const writingKey = { authorization: "Bearer tdk_writer" };
const keys = [apiKey("reader", "read"), apiKey("writer", "entitlements:write")];

export interface InboxProcess extends AsyncDisposable {
  readonly url: string;
  readonly streams: { readonly size: number };
  /** Wakes the streams, as the consumer does after its commit. */
  signal(): void;
}

/** A process that serves user inboxes. Processes share only the database. */
export async function inboxProcess(
  { url, db }: { readonly url: string; readonly db: Db },
  more: Partial<InboxStreamsOptions> = {},
): Promise<InboxProcess> {
  const app = await buildHttpApp({ title: "notification", version: "0", log: { level: "silent" } });
  const tokenBearer = tokenVerifier({ audience: "notification", keys: [publicPartOf("gateway-bff", gatewayKey)] });
  const authenticate = bearerAuthentication({ keyHolder: fixedKeys(keys), tokenBearer });
  const wakeups = openWakeups({ url, onError: () => {} });
  await wakeups.listening;
  const streams = openInboxStreams({ db, wakeups, topic, onError: () => {}, ...more });
  userInboxRoutes(app, { authenticate, db, streams });
  const stopping = new AbortController();
  const serving = await serve(app, { port: 0, stopping: stopping.signal });
  return {
    url: serving.url,
    streams,
    signal: () => wakeups.signal(topic),
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await serving.closed;
      await wakeups[Symbol.asyncDispose]();
    },
  };
}

interface Frame {
  readonly id?: string;
  readonly event?: string;
  readonly data?: string;
  readonly retry?: string;
}

/** A client as the standard describes it: it reconnects with the last id. */
export class InboxClient implements AsyncDisposable {
  /** All notifications received, in order. */
  readonly told: (Omit<UserNotification, "text"> & { readonly text: unknown })[] = [];
  readonly frames: Frame[] = [];
  lastEventId: string | undefined;
  #abort = new AbortController();
  #ended: Promise<"ended" | "cut"> = Promise.resolve("cut");
  #bytes = "";

  /** Returns the status of the response, and reads events until `shouldCut` returns true or the connection ends. */
  async connect(url: string, headers: Record<string, string> = {}, shouldCut = () => false): Promise<number> {
    this.#abort = new AbortController();
    const resume = this.lastEventId === undefined ? {} : { "last-event-id": this.lastEventId };
    const response = await fetch(url, { headers: { ...headers, ...resume }, signal: this.#abort.signal });
    if (response.status === 200) this.#ended = this.#read(response, shouldCut);
    else await response.body?.cancel();
    return response.status;
  }

  get ids(): string[] {
    return this.told.map(({ notification_id }) => notification_id);
  }

  /** Resolves when the connection is closed: `ended` if the server has ended the stream. */
  get over(): Promise<"ended" | "cut"> {
    return this.#ended;
  }

  cut(): void {
    this.#abort.abort();
  }

  async #read({ body }: Response, shouldCut: () => boolean): Promise<"ended" | "cut"> {
    const decoder = new TextDecoder();
    this.#bytes = "";
    try {
      for await (const chunk of body ?? []) {
        const frames = (this.#bytes + decoder.decode(chunk, { stream: true })).split("\n\n");
        this.#bytes = frames.pop() ?? "";
        for (const frame of frames) {
          this.#take(frame);
          if (shouldCut()) return "cut"; // The other frames of the chunk are lost.
        }
      }
      return "ended";
    } catch {
      return "cut";
    } finally {
      this.cut();
    }
  }

  #take(text: string): void {
    const fields = text.split("\n").flatMap((line) => {
      const [, name, value] = /^(\w+): (.*)$/.exec(line) ?? [];
      return name && value !== undefined ? [[name, value] as const] : [];
    });
    const frame: Frame = Object.fromEntries(fields);
    this.frames.push(frame);
    if (frame.id !== undefined) this.lastEventId = frame.id;
    if (frame.event === "notification") this.told.push(JSON.parse(frame.data ?? ""));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await this.#ended;
  }
}

/** Waits until every row is stable: open transactions of other tests on the server delay that. */
export const untilStable = (db: Db) =>
  until("every row is stable", async () => {
    const unstable = `select from notifications where xid >= pg_snapshot_xmin(pg_current_snapshot()) limit 1`;
    return (await db.query(unstable)).rowCount === 0;
  });

/** A transaction that stays open until it is committed or the test ends. */
export async function openTransaction(db: Db) {
  const client = await db.connect();
  await client.query("begin");
  let isOpen = true;
  const end = async (how: "commit" | "rollback") => {
    if (!isOpen) return;
    isOpen = false;
    await client.query(how);
    client.release();
  };
  return {
    query: client.query.bind(client) as Db["query"],
    commit: () => end("commit"),
    [Symbol.asyncDispose]: () => end("rollback"),
  };
}
