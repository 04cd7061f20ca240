/** What the tests of the routes share: processes of the service on one database, and ways to call them. */
import { hash } from "node:crypto";
import { bearerAuthentication, buildHttpApp, fixedKeys, tokenVerifier } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { changePoints } from "../commands/change-points.ts";
import { changeSchedule } from "../commands/change-schedule.ts";
import { changeScheduleUsers } from "../commands/change-schedule-users.ts";
import { createSchedule } from "../commands/create-schedule.ts";
import { cancel, reserve } from "../reservations/index.ts";
import { setup as setupReservations } from "../reservations/testing.ts";
import { pointsRoutes } from "./index.ts";

const keys = ["shop", "game"].map((holder) => ({
  holder,
  scopes: ["points:write", "read"] as const,
  sha256: hash("sha256", `tdk_${holder}`, "hex"),
}));

export const most = "9223372036854775807";

export async function setup() {
  const t = await setupReservations();
  const apps: { close(): Promise<unknown> }[] = [];

  /** Another process of the service: it shares nothing with the others but the database. */
  async function serve(db: Db = t.open()) {
    const app = await buildHttpApp({ title: "points", version: "0", log: { level: "silent" }, rules: true });
    const tokenBearer = tokenVerifier({ audience: "points", keys: [] });
    pointsRoutes(app, {
      db,
      authenticate: bearerAuthentication({ keyHolder: fixedKeys(keys), tokenBearer }),
      changePoints: changePoints(db, () => {}),
      reserve: reserve({ db, onSoon: () => {}, soonMs: 10_000 }),
      cancel: cancel(db),
      createSchedule: createSchedule(db, () => {}),
      changeSchedule: changeSchedule(db, () => {}),
      changeScheduleUsers: changeScheduleUsers(db),
    });
    apps.push(app);
    const call =
      (method: "DELETE" | "GET" | "POST" | "PUT") =>
      async (url: string, { key, body, holder = "shop" }: Sent = {}): Promise<Got> => {
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

interface Sent {
  readonly key?: string;
  /** JSON; a string is sent as it is. */
  readonly body?: unknown;
  readonly holder?: "shop" | "game";
}

interface Got {
  readonly status: number;
  readonly text: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly isReplay: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the service says.
  readonly json: any;
}
