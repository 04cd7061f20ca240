/** Grants are accepted while the message broker is unavailable, and each is delivered once when it is back. */
import { openNatsBus } from "@todoke/bus-nats";
import { openRabbitmqBus } from "@todoke/bus-rabbitmq";
import { consumers } from "@todoke/contracts";
import { startEngine } from "@todoke/engines";
import * as entitlement from "@todoke/entitlement";
import { testDatabase, until } from "@todoke/kernel/testing";
import * as notification from "@todoke/notification";
import { expect, test } from "vitest";
import { grantEnv, startGrantLoad } from "./grant-load.ts";

const outageMs = 30_000;
const perSecond = 50;
/** The longest that a client waits, on a busy machine. Waiting for the message broker would take 30 s. */
const responseMsMax = 15_000;
const drainMsMax = 120_000;

// Concurrent: the tests mostly wait.
test.concurrent.each(["nats", "rabbitmq"] as const)(
  "%s: grants are accepted during a 30 s outage and delivered once after it",
  { timeout: 400_000 },
  async (kind) => {
    await using messageBroker = await startEngine(kind);
    await using t = await testDatabase({ sets: [] });
    const env = { ...grantEnv, DATABASE_URL: t.url, ENTITLEMENT_PORT: "0", NOTIFICATION_PORT: "0" };
    const connection = { url: messageBroker.url, name: "flows" };
    const openBus = () => (kind === "nats" ? openNatsBus(connection) : openRabbitmqBus({ ...connection, consumers }));
    await entitlement.migrate(env, { dryRun: false });
    await notification.migrate(env, { dryRun: false });
    await using entitlementService = await entitlement.start(env, { openBus });
    await using notificationService = await notification.start(env, { openBus });
    const count = async (what: string) => Number((await t.db.query(`select count(*) from ${what}`)).rows[0].count);
    const sent = () => count(`notification.notifications where status = 'SENT'`);
    const unpublished = () => count(`entitlement.outbox_events where status <> 'PUBLISHED'`);

    const grants = startGrantLoad(perSecond, () => [entitlementService.url], { responseMsMax });
    await until("notifications are sent", async () => (await sent()) >= perSecond);

    const diedAt = performance.now();
    await messageBroker.kill();
    const before = grants.results.length;
    const { rows: died } = await t.db.query(`select clock_timestamp()::text as at`);
    const duringOutage = `entitlement.outbox_events where created_at > '${died[0].at}'`;
    await until("the outage has lasted long enough", () => performance.now() - diedAt >= outageMs, {
      withinMs: 2 * outageMs,
    });
    const answeredDuringOutage = grants.results.length - before;
    // The outage is real: new grants are in the outbox only.
    expect(await count(`${duringOutage} and status = 'PUBLISHED'`)).toBe(0);
    expect(await count(duringOutage)).toBeGreaterThan(2 * perSecond);
    // On a busy machine one readiness check may time out; the next one passes.
    for (const { url } of [entitlementService, notificationService])
      await until("it is ready without the message broker", async () => (await fetch(`${url}/readyz`)).ok);

    await messageBroker.start();
    // The load continues, so the backlog shrinks only if it drains faster than it grows.
    await until("the backlog has drained", async () => (await unpublished()) < perSecond, { withinMs: drainMsMax });
    await grants.stop();
    const users = grants.results.map(({ user }) => user).sort();
    await until("every user is notified", async () => (await sent()) >= users.length, { withinMs: drainMsMax });

    // Their number depends on the machine; each must be answered at its first attempt.
    expect(answeredDuringOutage).toBeGreaterThan(2 * perSecond);
    const failed = grants.results.filter(({ status, attempts }) => status !== 201 || attempts > 1);
    expect(failed).toEqual([]);
    const notified = await t.db.query(
      `select user_id, status from notification.notifications order by user_id collate "C"`,
    );
    expect(notified.rows).toEqual(users.map((user_id) => ({ user_id, status: "SENT" })));
    // The outage counted against no event.
    expect(await count(`entitlement.outbox_events where status = 'FAILED' or attempt_count > 3`)).toBe(0);
    expect(await count(`notification.inbox_dlq`)).toBe(0);
  },
);
