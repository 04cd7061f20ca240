/** While the broker is away grants are answered as always; when it is back everybody hears, once. */
import { openNatsBus } from "@todoke/bus-nats";
import { openRabbitmqBus } from "@todoke/bus-rabbitmq";
import { consumers } from "@todoke/contracts";
import { startEngine } from "@todoke/engines";
import * as entitlement from "@todoke/entitlement";
import { testDatabase, until } from "@todoke/kernel/testing";
import * as notification from "@todoke/notification";
import { expect, test } from "vitest";
import { grantingEnv, startGranting } from "./granting.ts";

const awayMs = 30_000;
const perSecond = 50;
/** The longest that a client waits for an answer, on a machine that does a lot besides. For the broker it would be 30 s. */
const answerMsMax = 15_000;
const drainMsMax = 120_000;

// Together: each waits most of the time, and that costs nothing.
test.concurrent.each(["nats", "rabbitmq"] as const)(
  "%s: grants are answered through 30 s without the broker, and told once it is back",
  { timeout: 400_000 },
  async (kind) => {
    await using broker = await startEngine(kind);
    await using t = await testDatabase({ sets: [] });
    const env = { ...grantingEnv, DATABASE_URL: t.url, ENTITLEMENT_PORT: "0", NOTIFICATION_PORT: "0" };
    const about = { url: broker.url, name: "flows" };
    const openBus = () => (kind === "nats" ? openNatsBus(about) : openRabbitmqBus({ ...about, consumers }));
    await entitlement.migrate(env, { dryRun: false });
    await notification.migrate(env, { dryRun: false });
    await using granting = await entitlement.start(env, { openBus });
    await using telling = await notification.start(env, { openBus });
    const count = async (what: string) => Number((await t.db.query(`select count(*) from ${what}`)).rows[0].count);
    const sent = () => count(`notification.notifications where status = 'SENT'`);
    const waiting = () => count(`entitlement.outbox_events where status <> 'PUBLISHED'`);

    const grants = startGranting(perSecond, () => [granting.url], { answerMsMax });
    await until("the road is open", async () => (await sent()) >= perSecond);

    const diedAt = performance.now();
    await broker.kill();
    const before = grants.answered.length;
    const { rows: died } = await t.db.query(`select clock_timestamp()::text as at`);
    const meanwhile = `entitlement.outbox_events where created_at > '${died[0].at}'`;
    await until("it was away for long enough", () => performance.now() - diedAt >= awayMs, { withinMs: 2 * awayMs });
    const answeredMeanwhile = grants.answered.length - before;
    // It was away indeed: what was granted since then is nowhere but in the outbox.
    expect(await count(`${meanwhile} and status = 'PUBLISHED'`)).toBe(0);
    expect(await count(meanwhile)).toBeGreaterThan(2 * perSecond);
    // On a busy machine a check may be late, and says so; the next one is not. The broker is away all the while.
    for (const { url } of [granting, telling])
      await until("it is ready without the broker", async () => (await fetch(`${url}/readyz`)).ok);

    await broker.start();
    // The load goes on, so the backlog shrinks only if it drains faster than it is filled.
    await until("the backlog has drained", async () => (await waiting()) < perSecond, { withinMs: drainMsMax });
    await grants.stop();
    const users = grants.answered.map(({ user }) => user).sort();
    await until("everybody has heard", async () => (await sent()) >= users.length, { withinMs: drainMsMax });

    // How many depends on the machine. That each was answered at once, and none waited for the broker, does not.
    expect(answeredMeanwhile).toBeGreaterThan(2 * perSecond);
    const badly = grants.answered.filter(({ status, tries }) => status !== 201 || tries > 1);
    expect(badly).toEqual([]);
    const told = await t.db.query(
      `select user_id, status from notification.notifications order by user_id collate "C"`,
    );
    expect(told.rows).toEqual(users.map((user_id) => ({ user_id, status: "SENT" })));
    // Its absence was held against no event.
    expect(await count(`entitlement.outbox_events where status = 'FAILED' or attempt_count > 3`)).toBe(0);
    expect(await count(`notification.inbox_dlq`)).toBe(0);
  },
);
