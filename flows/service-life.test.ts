import { hash, randomBytes } from "node:crypto";
import { decodeEvent } from "@todoke/contracts";
import { migrate, start } from "@todoke/entitlement";
import type { Delivery } from "@todoke/kernel/bus";
import { testDatabase } from "@todoke/kernel/testing";
import { done } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { busKinds, openBus, serverUrl } from "./buses.ts";

const key = "tdk_flow";

test.each(busKinds)(
  "%s: a service starts, publishes its events, and stops after all accepted work is done",
  async (kind) => {
    await using t = await testDatabase({ sets: [] });
    const address = { kind, url: serverUrl(kind, t.url), namespace: `life${randomBytes(4).toString("hex")}` };
    await using bus = await openBus(address);
    const delivered: Delivery[] = [];
    await using _ = await bus.subscribe({
      consumer: "flow",
      subjects: ["entitlement.events"],
      handle: async (all) => {
        delivered.push(...all);
        return all.map(() => done);
      },
    });
    const env = {
      DATABASE_URL: t.url,
      ENTITLEMENT_PORT: "0",
      LOG_LEVEL: "silent",
      TODOKE_API_KEYS: `flow=entitlements:write+read=${hash("sha256", key, "hex")}`,
    };
    await migrate(env, { dryRun: false });
    const service = await start(env, { openBus: () => openBus(address) });

    // On a busy machine one check may time out; the next one passes.
    const ready = async () => (await fetch(`${service.url}/readyz`)).json();
    await expect.poll(ready).toMatchObject({ status: "ready" });
    const grants = Array.from({ length: 20 }, (_, n) =>
      fetch(`${service.url}/v1/entitlements/grants`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "idempotency-key": `key-${n}`, "content-type": "application/json" },
        body: JSON.stringify({
          user_id: `u_${n}`,
          stock_keeping_unit: "item1",
          reason: "purchase",
          purchase_id: `p_${n}`,
        }),
      }),
    );
    expect((await Promise.all(grants)).map((response) => response.status)).toEqual(
      Array.from({ length: 20 }, () => 201),
    );
    // A bus may redeliver an event after a late ack.
    const users = () => new Set(delivered.map((event) => decodeEvent("EntitlementGranted", event.payload).userId));
    await expect.poll(() => users().size).toBe(20);
    expect(new Set(delivered.map((event) => event.eventId)).size).toBe(20);

    await service[Symbol.asyncDispose]();
    await service.stopped;
    await expect(fetch(`${service.url}/livez`)).rejects.toThrow();
    const { rows } = await t.db.query(`select distinct status from entitlement.outbox_events`);
    expect(rows).toEqual([{ status: "PUBLISHED" }]);
  },
);
