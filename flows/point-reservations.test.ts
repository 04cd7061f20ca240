/** The three scenarios of seed 003 on every bus: granted when due, a repeated message, and a worker that was down. */
import { randomUUIDv7 } from "node:crypto";
import { encodeOutboxEvent } from "@todoke/contracts";
import type { Envelope } from "@todoke/kernel/bus";
import { until } from "@todoke/kernel/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BusKind, busKinds, openServiceBus } from "./buses.ts";
import { openPoints, type PointsSetup } from "./points.ts";
import type { ServiceProcess } from "./service-process.ts";

const hourMs = 3_600_000;

/** A time with the offset of Tokyo. */
const inTokyo = (ms: number) => new Date(Date.now() + ms + 9 * hourMs).toISOString().replace("Z", "+09:00");

async function openScenario(kind: BusKind) {
  await using parts = new AsyncDisposableStack();
  const setup: PointsSetup = parts.use(
    await openPoints({ kind, processes: [["api"], ["scheduler", "relay", "maintenance"]] }),
  );
  const { client, db } = setup;
  let worker: ServiceProcess = await setup.start(["worker"]);

  const reserve = async (user: string, dueInMs: number, reason = user) => {
    const body = { user_id: user, point_amount: 100, execute_at: inTokyo(dueInMs), reason };
    return (await client.request<{ id: string }>({ method: "POST", path: "/point/reserve", body })).id;
  };
  const getStatuses = (ids: readonly string[]) =>
    Promise.all(ids.map(async (id) => (await client.reservation(id)).status));

  const all = parts.move();
  return {
    ...setup,
    reserve,
    getStatuses,
    async waitForStatus(status: string, ids: readonly string[]) {
      for (const id of ids) {
        const hasStatus = async () => (await client.reservation(id)).status === status;
        await until(`reservation ${id} is ${status}`, hasStatus);
      }
    },
    async stopWorker() {
      worker.signal("SIGTERM");
      expect(await worker.exited).toBe(0);
    },
    async startWorker() {
      worker = await setup.start(["worker"]);
    },
    /** The message that the scheduler sent for a reservation. */
    async dueMessage(id: string): Promise<Envelope> {
      const { rows } = await db.query(`select payload::text as payload from outbox_events where event_id = $1`, [id]);
      const [eventType, subject] = ["PointReservationDue", "points.reservations"];
      const payload = encodeOutboxEvent({ eventType, payload: rows[0].payload });
      return { eventId: id, eventType, subject, aggregateKey: id, occurredAt: inTokyo(0), headers: {}, payload };
    },
    /** The user's notifications, as soon as there is one. */
    async waitForNotifications(user: string) {
      await until(`${user} is notified`, async () => (await setup.notificationsOf(user)).length > 0);
      return (await setup.notificationsOf(user)).map(({ event_type, data }) => ({ event_type, ...data }));
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

describe.each(busKinds)("on %s", (kind) => {
  let scenario: Awaited<ReturnType<typeof openScenario>>;
  beforeAll(async () => {
    scenario = await openScenario(kind);
  });
  afterAll(() => scenario?.[Symbol.asyncDispose]());

  test("points are granted when due, not before, and the user is notified", async () => {
    const { client } = scenario;
    const [near, far] = [await scenario.reserve("u_near", 800), await scenario.reserve("u_far", hourMs)];
    await scenario.waitForStatus("DONE", [near]);
    expect(await client.confirm("u_near")).toMatchObject({ balance: 100, pending: 0 });
    expect(await client.confirm("u_far")).toMatchObject({ balance: 0, pending: 100 });
    expect(await scenario.getStatuses([far])).toEqual(["PENDING"]);
    expect(await scenario.waitForNotifications("u_near")).toEqual([
      expect.objectContaining({ event_type: "PointsGranted", point_amount: "100", balance: "100" }),
    ]);
    const { rows } = await scenario.db.query(
      `select r.sent_at >= r.execute_at and x.created_at >= date_trunc('milliseconds', r.execute_at) as in_time
         from point_reservations r join point_transactions x on x.id = r.transaction_id where r.id = $1`,
      [near],
    );
    expect(rows).toEqual([{ in_time: true }]);
  });

  test("a message that arrives ten times grants once", async () => {
    const id = await scenario.reserve("u_again", -hourMs);
    await scenario.waitForStatus("DONE", [id]);
    const message = await scenario.dueMessage(id);
    // The bus and the inbox deduplicate by ID, so ten copies with new IDs reach the ledger.
    const copies = Array.from({ length: 10 }, () => ({ ...message, eventId: randomUUIDv7() }));
    await using bus = await openServiceBus(kind, scenario.busUrl);
    for (const each of [...copies.map(() => message), ...copies]) await bus.publish([each]);
    const handled = () =>
      scenario.db.query(`select from processed_events where event_id = any($1::uuid[])`, [
        copies.map((c) => c.eventId),
      ]);
    await until("the worker has handled them all", async () => (await handled()).rowCount === copies.length);

    expect(await scenario.client.confirm("u_again")).toMatchObject({ balance: 100, pending: 0 });
    expect(await scenario.getStatuses([id])).toEqual(["DONE"]);
    expect(await scenario.waitForNotifications("u_again")).toHaveLength(1);
    expect((await scenario.db.query(`select from point_transactions where user_id = 'u_again'`)).rowCount).toBe(1);
  });

  test("reservations made while the worker is down are granted when it is back", async () => {
    await scenario.stopWorker();
    const ids = await Promise.all(
      Array.from({ length: 20 }, (_, n) => scenario.reserve(`u_${n % 5}`, -hourMs, `reservation ${n}`)),
    );
    await scenario.waitForStatus("PROCESSING", ids);
    expect(await scenario.client.confirm("u_0")).toMatchObject({ balance: 0, pending: 400 });
    await scenario.startWorker();
    await scenario.waitForStatus("DONE", ids);
    for (let n = 0; n < 5; n++) {
      expect(await scenario.client.confirm(`u_${n}`)).toMatchObject({ balance: 400, pending: 0 });
      const notified = async () => (await scenario.notificationsOf(`u_${n}`)).length;
      await until(`u_${n} is notified of each`, async () => (await notified()) >= 4);
      expect(await notified()).toBe(4);
    }
  });
});
