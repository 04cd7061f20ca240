/** For tests: the service on a database of its own, and ways to call it. */
import { hash } from "node:crypto";
import { bearerAuthentication, buildHttpApp, fixedKeys, tokenVerifier } from "@todoke/http";
import { type Db, transaction } from "@todoke/kernel/db";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { patient, testDatabase } from "@todoke/kernel/testing";
import { createCommands } from "./deps.ts";
import { batchRoute } from "./routes/batch.ts";
import { entitlementRoutes } from "./routes/entitlements.ts";
import { userEntitlementRoutes } from "./routes/user-entitlements.ts";
import { createAuditPartitions } from "./store/audit-partitions.ts";

const own = { name: "entitlement", dir: new URL("./migrations/", import.meta.url) };

export const body = { user_id: "u_123", stock_keeping_unit: "item1", reason: "purchase", purchase_id: "p_456" };

const keys = ["shop", "game"].map((holder) => ({
  holder,
  scopes: ["entitlements:write", "read"] as const,
  sha256: hash("sha256", `tdk_${holder}`, "hex"),
}));

export async function setup() {
  const t = await testDatabase({ schema: "entitlement", sets: [kernelMigrations, own], pools: patient });
  // Databases are cloned from a template, which may have been made in another month.
  await transaction(t.db, (tx) => createAuditPartitions(tx, 2));
  const apps: { close(): Promise<unknown> }[] = [];

  /** Another process of the service. Processes share only the database. */
  async function process(db: Db = t.open()) {
    const app = await buildHttpApp({ title: "entitlement", version: "0", log: { level: "silent" } });
    const tokenBearer = tokenVerifier({ audience: "entitlement", keys: [] });
    const authenticate = bearerAuthentication({ keyHolder: fixedKeys(keys), tokenBearer });
    const deps = { db, authenticate, ...createCommands(db, () => {}) };
    entitlementRoutes(app, deps);
    batchRoute(app, deps);
    userEntitlementRoutes(app, deps);
    apps.push(app);
    return {
      batch: (items: readonly unknown[]) =>
        app.inject({
          method: "POST",
          url: "/v1/entitlements/batch",
          headers: { authorization: "Bearer tdk_shop" },
          payload: { items },
        }),
      post: (path: "grants" | "revokes", key: string, payload: unknown = body, holder = "shop") =>
        app.inject({
          method: "POST",
          url: `/v1/entitlements/${path}`,
          headers: {
            "idempotency-key": key,
            authorization: `Bearer tdk_${holder}`,
            "content-type": "application/json",
          },
          payload: typeof payload === "string" ? payload : JSON.stringify(payload),
        }),
      get: (url: string) => app.inject({ url, headers: { authorization: "Bearer tdk_shop" } }),
      app,
    };
  }

  const count = async (table: string) => Number((await t.db.query(`select count(*) from ${table}`)).rows[0].count);
  return {
    ...t,
    process,
    /** The row count of each table that a command writes. */
    rows: async () => ({
      entitlements: await count("entitlements"),
      events: await count("outbox_events"),
      audit: await count("entitlement_audit"),
      keys: await count("idempotency_keys"),
    }),
    async [Symbol.asyncDispose]() {
      await Promise.all(apps.map((app) => app.close()));
      await t[Symbol.asyncDispose]();
    },
  };
}
