/** For tests: processes that serve live inboxes, and clients that lose their connection and come back. */

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
import type { UserNotification } from "../store/inbox-news.ts";
import { type LiveInboxOptions, openLiveInbox } from "./live-inbox.ts";

const topic = "notification.notifications";

const gatewayKey = newSigningKey("k1");
export const { tokenFor } = openSigner({ issuer: "gateway-bff", key: gatewayKey });

const keyOf = (holder: string, scope: Scope) => ({
  holder,
  scopes: [scope],
  sha256: hash("sha256", `tdk_${holder}`, "hex"),
});
export const readingKey = { authorization: "Bearer tdk_reader" };
export const writingKey = { authorization: "Bearer tdk_writer" };
const keys = [keyOf("reader", "read"), keyOf("writer", "entitlements:write")];

export interface InboxProcess extends AsyncDisposable {
  readonly url: string;
  readonly live: { readonly size: number };
  /** As the inbox does after its commit. */
  signal(): void;
}

/** A process of the service, as far as inboxes go: it shares nothing with others but the database. */
export async function inboxProcess(
  { url, db }: { readonly url: string; readonly db: Db },
  more: Partial<LiveInboxOptions> = {},
): Promise<InboxProcess> {
  const app = await buildHttpApp({ title: "notification", version: "0", log: { level: "silent" } });
  const tokenBearer = tokenVerifier({ audience: "notification", keys: [publicPartOf("gateway-bff", gatewayKey)] });
  const authenticate = bearerAuthentication({ keyHolder: fixedKeys(keys), tokenBearer });
  const wakeups = openWakeups({ url, onError: () => {} });
  await wakeups.listening;
  const live = openLiveInbox({ db, wakeups, topic, onError: () => {}, ...more });
  userInboxRoutes(app, { authenticate, db, live });
  const stopping = new AbortController();
  const serving = await serve(app, { port: 0, stopping: stopping.signal });
  return {
    url: serving.url,
    live,
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

/** A client as the standard describes one: it remembers the last id, and comes back with it. */
export class InboxClient implements AsyncDisposable {
  /** All that it was ever told, in that order. */
  readonly told: (Omit<UserNotification, "text"> & { readonly text: unknown })[] = [];
  readonly frames: Frame[] = [];
  lastEventId: string | undefined;
  #leave = new AbortController();
  #ended: Promise<"ended" | "cut"> = Promise.resolve("cut");
  #bytes = "";

  /** The status of the answer. Events are read from now on, until it is cut or `pleaseCut` says so. */
  async connect(url: string, headers: Record<string, string> = {}, pleaseCut = () => false): Promise<number> {
    this.#leave = new AbortController();
    const resume = this.lastEventId === undefined ? {} : { "last-event-id": this.lastEventId };
    const answer = await fetch(url, { headers: { ...headers, ...resume }, signal: this.#leave.signal });
    if (answer.status === 200) this.#ended = this.#read(answer, pleaseCut);
    else await answer.body?.cancel();
    return answer.status;
  }

  get ids(): string[] {
    return this.told.map(({ notification_id }) => notification_id);
  }

  /** Resolves when the connection is over: `ended` when the server has ended it in order. */
  get over(): Promise<"ended" | "cut"> {
    return this.#ended;
  }

  cut(): void {
    this.#leave.abort();
  }

  async #read({ body }: Response, pleaseCut: () => boolean): Promise<"ended" | "cut"> {
    const decoder = new TextDecoder();
    this.#bytes = "";
    try {
      for await (const chunk of body ?? []) {
        const frames = (this.#bytes + decoder.decode(chunk, { stream: true })).split("\n\n");
        this.#bytes = frames.pop() ?? "";
        for (const frame of frames) {
          this.#take(frame);
          if (pleaseCut()) return "cut"; // What has come with it is lost on the way.
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

/** Resolves when every row counts: others on this server may be writing, and hold it back for a moment. */
export const untilSettled = (db: Db) =>
  until("nothing is held back", async () => {
    const held = `select from notifications where xid >= pg_snapshot_xmin(pg_current_snapshot()) limit 1`;
    return (await db.query(held)).rowCount === 0;
  });

/** A transaction that writes, and stays open until it is told to commit, or the test ends. */
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
