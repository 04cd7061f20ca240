/** Shared by the tests of the routes: the HTTP API of one or more processes on one database. */
import { hash } from "node:crypto";
import { bearerAuthentication, buildHttpApp, fixedKeys, tokenVerifier } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { createCommands } from "../commands/create-commands.ts";
import { setup as setupService } from "../testing.ts";
import { pointsRoutes } from "./index.ts";

const keys = ["shop", "game"].map((holder) => ({
  holder,
  scopes: ["points:write", "read"] as const,
  sha256: hash("sha256", `tdk_${holder}`, "hex"),
}));

export const most = "9223372036854775807";

export async function setup() {
  const t = await setupService();
  const apps: { close(): Promise<unknown> }[] = [];

  /** Another process of the service: it shares nothing with the others but the database. */
  async function serve(db: Db = t.open()) {
    const app = await buildHttpApp({ title: "points", version: "0", log: { level: "silent" }, rules: true });
    const tokenBearer = tokenVerifier({ audience: "points", keys: [] });
    const authenticate = bearerAuthentication({ keyHolder: fixedKeys(keys), tokenBearer });
    const ignore = () => {};
    const commands = createCommands({ db, wakeRelay: ignore, wakeScheduler: ignore, soonMs: 10_000 });
    pointsRoutes(app, { db, authenticate, ...commands });
    apps.push(app);
    const call =
      (method: "DELETE" | "GET" | "POST" | "PUT") =>
      async (url: string, { key, body, holder = "shop" }: CallOptions = {}): Promise<CallResult> => {
        const answer = await app.inject({
          method,
          url,
          headers: {
            authorization: `Bearer tdk_${holder}`,
            ...(key !== undefined && { "idempotency-key": key }),
            ...(body !== undefined && { "content-type": "application/json" }),
          },
          ...(body !== undefined && { payload: typeof body === "string" ? body : JSON.stringify(body) }),
        });
        const { statusCode: status, body: text, headers } = answer;
        const isReplay = headers["idempotency-replayed"] === "true";
        return { status, text, headers, isReplay, json: text.startsWith("{") ? JSON.parse(text) : undefined };
      };
    return { app, get: call("GET"), post: call("POST"), put: call("PUT"), del: call("DELETE") };
  }

  return {
    ...t,
    ...(await serve(t.db)),
    serve,
    async [Symbol.asyncDispose]() {
      await Promise.all(apps.map((app) => app.close()));
      await t[Symbol.asyncDispose]();
    },
  };
}

interface CallOptions {
  readonly key?: string;
  /** JSON; a string is sent as it is. */
  readonly body?: unknown;
  readonly holder?: "shop" | "game";
}

interface CallResult {
  readonly status: number;
  readonly text: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly isReplay: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: the body of any response.
  readonly json: any;
}
