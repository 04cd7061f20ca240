/** While the broker is away grants are answered as always; when it is back everybody hears, once. */
import { hash } from "node:crypto";
import { openNatsBus } from "@todoke/bus-nats";
import { openRabbitmqBus } from "@todoke/bus-rabbitmq";
import { consumers } from "@todoke/contracts";
import { startEngine } from "@todoke/engines";
import * as entitlement from "@todoke/entitlement";
import { testDatabase, until } from "@todoke/kernel/testing";
import * as notification from "@todoke/notification";
import { expect, test } from "vitest";

const key = "tdk_flow";

const settings = {
  TODOKE_API_KEYS: `flow=entitlements:write+read=${hash("sha256", key, "hex")}`,
  LOG_LEVEL: "silent",
  ENTITLEMENT_PORT: "0",
  NOTIFICATION_PORT: "0",
};

const brokers = ["nats", "rabbitmq"] as const;

test.each(brokers)(
  "%s: grants are answered while the broker is away, and told once it is back",
  { timeout: 90_000 },
  async (kind) => {
    await using broker = await startEngine(kind);
    await using t = await testDatabase({ sets: [] });
    const env = { ...settings, DATABASE_URL: t.url };
    const about = { url: broker.url, name: "flows" };
    const openBus = () => (kind === "nats" ? openNatsBus(about) : openRabbitmqBus({ ...about, consumers }));
    await entitlement.migrate(env, { dryRun: false });
    await notification.migrate(env, { dryRun: false });
    await using granting = await entitlement.start(env, { openBus });
    await using telling = await notification.start(env, { openBus });
    expect(telling.url).toMatch(/^http/);

    let granted = 0;
    const grant = async () => {
      const n = granted++;
      const answer = await fetch(`${granting.url}/v1/entitlements/grants`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "idempotency-key": `key-${n}`, "content-type": "application/json" },
        body: JSON.stringify({
          user_id: `u_${n}`,
          stock_keeping_unit: "item1",
          reason: "purchase",
          purchase_id: `p_${n}`,
        }),
      });
      expect(answer.status).toBe(201);
    };
    const grants = (count: number) => Promise.all(Array.from({ length: count }, grant));
    const sent = async () =>
      Number((await t.db.query(`select count(*) from notification.notifications where status = 'SENT'`)).rows[0].count);

    await grants(50);
    await until("the road is open", async () => (await sent()) === 50, { withinMs: 20_000 });

    await broker.kill();
    for (let i = 0; i < 10; i++) await grants(50);
    const ready = await fetch(`${granting.url}/readyz`);
    expect(ready.status).toBe(200);
    const waiting = await t.db.query(`select from entitlement.outbox_events where status <> 'PUBLISHED'`);
    expect(waiting.rowCount).toBeGreaterThan(400);

    await broker.start();
    await until("everybody has heard", async () => (await sent()) >= granted, { withinMs: 60_000 });
    const { rows } = await t.db.query(
      `select count(*)::int as told, count(distinct user_id)::int as users from notification.notifications`,
    );
    expect(rows).toEqual([{ told: 550, users: 550 }]);
    const failed = await t.db.query(
      `select from entitlement.outbox_events where status = 'FAILED' or attempt_count > 3`,
    );
    expect(failed.rowCount).toBe(0); // Its absence was held against no event.
  },
);
