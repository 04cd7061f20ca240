/**
 * The three scenarios of seed 003 on every bus, with its three processes, over HTTP: granted at its time; the same message
 * again and again; a worker that was down. And the user hears of the points, once.
 */
import { randomUUIDv7 } from "node:crypto";
import { encodeOutboxEvent } from "@todoke/contracts";
import type { Envelope } from "@todoke/kernel/bus";
import { until } from "@todoke/kernel/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BusKind, busKinds, openServedBus } from "./buses.ts";
import { openPoints, type PointsSetup } from "./points.ts";
import type { Serving } from "./serving.ts";

const hourMs = 3_600_000;

/** As somebody in Japan writes it. */
const inTokyo = (ms: number) => new Date(Date.now() + ms + 9 * hourMs).toISOString().replace("Z", "+09:00");

async function openScene(kind: BusKind) {
  await using parts = new AsyncDisposableStack();
  const setup: PointsSetup = parts.use(
    await openPoints({ kind, processes: [["api"], ["scheduler", "relay", "maintenance"]] }),
  );
  const { client, db } = setup;
  let worker: Serving = await setup.start(["worker"]);

  const reserve = async (user: string, inMs: number, reason = user) => {
    const body = { user_id: user, point_amount: 100, execute_at: inTokyo(inMs), reason };
    return (await client.told<{ id: string }>({ method: "POST", path: "/point/reserve", body })).id;
  };
  const statusesOf = (ids: readonly string[]) =>
    Promise.all(ids.map(async (id) => (await client.reservation(id)).status));

  const all = parts.move();
  return {
    ...setup,
    reserve,
    statusesOf,
    async untilAll(status: string, ids: readonly string[]) {
      for (const id of ids) {
        const isSo = async () => (await client.reservation(id)).status === status;
        await until(`reservation ${id} is ${status}`, isSo);
      }
    },
    async stopWorker() {
      worker.signal("SIGTERM");
      expect(await worker.exited).toBe(0);
    },
    async startWorker() {
      worker = await setup.start(["worker"]);
    },
    /** What the worker was told of a reservation. */
    async dueMessage(id: string): Promise<Envelope> {
      const { rows } = await db.query(`select payload::text as payload from outbox_events where event_id = $1`, [id]);
      const [eventType, subject] = ["PointReservationDue", "points.reservations"];
      const payload = encodeOutboxEvent({ eventType, payload: rows[0].payload });
      return { eventId: id, eventType, subject, aggregateKey: id, occurredAt: inTokyo(0), headers: {}, payload };
    },
    /** What a user was told, once they were. */
    async heard(user: string) {
      await until(`${user} is notified`, async () => (await setup.notificationsOf(user)).length > 0);
      return (await setup.notificationsOf(user)).map(({ event_type, data }) => ({ event_type, ...data }));
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

describe.each(busKinds)("on %s", (kind) => {
  let scene: Awaited<ReturnType<typeof openScene>>;
  beforeAll(async () => {
    scene = await openScene(kind);
  });
  afterAll(() => scene?.[Symbol.asyncDispose]());

  test("points are granted when their time has come and not before, and their user is told", async () => {
    const { client } = scene;
    const [near, far] = [await scene.reserve("u_near", 800), await scene.reserve("u_far", hourMs)];
    await scene.untilAll("DONE", [near]);
    expect(await client.confirm("u_near")).toMatchObject({ balance: 100, pending: 0 });
    expect(await client.confirm("u_far")).toMatchObject({ balance: 0, pending: 100 });
    expect(await scene.statusesOf([far])).toEqual(["PENDING"]);
    expect(await scene.heard("u_near")).toEqual([
      expect.objectContaining({ event_type: "PointsGranted", point_amount: "100", balance: "100" }),
    ]);
    const { rows } = await scene.db.query(
      `select r.sent_at >= r.execute_at and x.created_at >= date_trunc('milliseconds', r.execute_at) as in_time
         from point_reservations r join point_transactions x on x.id = r.transaction_id where r.id = $1`,
      [near],
    );
    expect(rows).toEqual([{ in_time: true }]);
  });

  test("the same message ten times is one grant", async () => {
    const id = await scene.reserve("u_again", -hourMs);
    await scene.untilAll("DONE", [id]);
    const message = await scene.dueMessage(id);
    // A bus, or the inbox, may know a message again by its id: under ids of their own ten more get through to the ledger.
    const copies = Array.from({ length: 10 }, () => ({ ...message, eventId: randomUUIDv7() }));
    await using bus = await openServedBus(kind, scene.busUrl);
    for (const each of [...copies.map(() => message), ...copies]) await bus.publish([each]);
    const handled = () =>
      scene.db.query(`select from processed_events where event_id = any($1::uuid[])`, [copies.map((c) => c.eventId)]);
    await until("the worker has met them all", async () => (await handled()).rowCount === copies.length);

    expect(await scene.client.confirm("u_again")).toMatchObject({ balance: 100, pending: 0 });
    expect(await scene.statusesOf([id])).toEqual(["DONE"]);
    expect(await scene.heard("u_again")).toHaveLength(1);
    expect((await scene.db.query(`select from point_transactions where user_id = 'u_again'`)).rowCount).toBe(1);
  });

  test("what is reserved while the worker is down is granted when it is back", async () => {
    await scene.stopWorker();
    const ids = await Promise.all(
      Array.from({ length: 20 }, (_, n) => scene.reserve(`u_${n % 5}`, -hourMs, `reservation ${n}`)),
    );
    await scene.untilAll("PROCESSING", ids);
    expect(await scene.client.confirm("u_0")).toMatchObject({ balance: 0, pending: 400 });
    await scene.startWorker();
    await scene.untilAll("DONE", ids);
    for (let n = 0; n < 5; n++) {
      expect(await scene.client.confirm(`u_${n}`)).toMatchObject({ balance: 400, pending: 0 });
      const notified = async () => (await scene.notificationsOf(`u_${n}`)).length;
      await until(`u_${n} is notified of each`, async () => (await notified()) >= 4);
      expect(await notified()).toBe(4);
    }
  });
});
