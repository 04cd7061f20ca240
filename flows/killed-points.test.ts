/**
 * Processes of points are killed with -9 at every step of scheduler, relay, worker and API, or fall asleep there, or believe
 * in a wrong time, or lose their database, while clients book grants. Whatever was answered is granted once, by the tables and
 * by the API; none comes early; and each is told once.
 */
import { startEngine } from "@todoke/engines";
import { deadInboxEvents } from "@todoke/kernel/inbox";
import { until } from "@todoke/kernel/testing";
import { auditLedger } from "@todoke/points/audit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withClockOff } from "./doomed.ts";
import { openTown, type Role, type Step, type Town } from "./points.ts";
import { type Booked, endOf, fullUser } from "./points-booking.ts";

const hourMs = 3_600_000;

const stepsOf = (role: Role, steps: Readonly<Record<string, number>>): Step[] =>
  Object.entries(steps).map(([name, hit]) => ({ name, hit, role }));

const allSteps: readonly Step[] = [
  ...stepsOf("api", { "gather.carrying": 8, "statement.sent": 8, "gather.carried": 8 }),
  // A look begins with a recurring grant, and then takes what is due: every second transaction is that.
  ...stepsOf("scheduler", { "scheduler.taking": 2, "transaction.commit-sent": 6, "scheduler.taken": 2 }),
  ...stepsOf("relay", { "relay.claimed": 2, "relay.publishing": 2, "relay.published": 2, "relay.settle-sent": 2 }),
  ...stepsOf("worker", {
    "consumer.received": 2,
    "consumer.marked": 2,
    "grant.booked": 2,
    "consumer.effect": 2,
    "transaction.commit-sent": 2,
    "consumer.handled": 2,
    "delivery.settled": 2,
    "consumer.counted": 1,
    "grant.failing": 1,
    "consumer.buried": 1,
  }),
];

/** Where a broker of its own, and not a table, has the messages of the dead. */
const brokerSteps = stepsOf("worker", { "consumer.effect": 2, "consumer.handled": 2, "consumer.acked": 2 });

describe.each([
  { kind: "postgres", steps: allSteps },
  { kind: "rabbitmq", steps: [...brokerSteps, ...stepsOf("relay", { "relay.published": 2 })] },
] as const)("on $kind", ({ kind, steps }) => {
  let town: Town;
  beforeAll(async () => {
    town = await openTown({ kind });
    await town.fill();
  });
  afterAll(() => town?.[Symbol.asyncDispose]());

  test.each(steps)(
    "a $role killed at $name: what was booked is granted once, in time",
    { timeout: 120_000 },
    async (step) => {
      town.booking.start();
      await town.dieAt(step);
      expect(await town.faults()).toEqual([]);
    },
  );
});

test("a scheduler that falls asleep in its turn holds nobody up for good, and changes nothing when it wakes", {
  timeout: 120_000,
}, async () => {
  await using town = await openTown({ kind: "postgres" });
  await town.fill();
  town.booking.start();
  await using sleeper = await town.sleepAt({ name: "scheduler.taking", hit: 1, role: "scheduler" });
  await town.untilBooked(town.booking.booked.length + 1);
  const since = town.booking.booked.at(-1) as Booked;
  // The server ends a transaction whose process has been silent for ten seconds.
  const isEnded = async () => (await town.client.reservation(since.id)).status === endOf(since.user);
  await until("others have ended what was booked since", isEnded, { withinMs: 60_000 });
  sleeper.signal("SIGCONT");
  await town.untilBooked(town.booking.booked.length + 20);
  expect(await town.faults()).toEqual([]);
});

test.each([
  { hours: 1, off: "an hour fast" },
  { hours: -1, off: "an hour slow" },
])(
  "in processes whose clock is $off, only the database's clock says what is due and what runs out",
  {
    timeout: 60_000,
  },
  async ({ hours }) => {
    await using town = await openTown({ kind: "postgres", processes: [] });
    await town.start(["api", "relay", "scheduler", "upkeep", "worker"], withClockOff(hours * hourMs));
    const { client } = town;
    const book = async (user: string, dueInMs: number, endsInMs: number) => {
      const [execute_at, expires_at] = [dueInMs, endsInMs].map((ms) => new Date(Date.now() + ms).toISOString());
      const body = { user_id: user, point_amount: 5, execute_at, expires_at };
      return (await client.told<{ id: string }>({ method: "POST", path: "/point/reserve", body })).id;
    };
    const later = await book("u_later", hourMs / 2, hourMs);
    const due = [await book("u_due", -hourMs / 2, hourMs / 2), await book("u_due", 300, hourMs / 2)];
    const areDone = async () =>
      (await Promise.all(due.map((id) => client.reservation(id)))).every(({ status }) => status === "DONE");
    await until("what is due is granted", areDone, { withinMs: 30_000 });
    // Booked behind the others, and granted: everything has been looked at since.
    due.push(await book("u_due", 0, hourMs / 2));
    await until("what was booked last is granted", areDone, { withinMs: 30_000 });

    expect((await client.reservation(later)).status).toBe("PENDING");
    expect(await client.confirm("u_later")).toMatchObject({ balance: 0, pending: 5 });
    expect(await client.confirm("u_due")).toMatchObject({ balance: 15, pending: 0 });
    const { rows } = await town.db.query(`select kind, count(*)::int as n from point_transactions group by kind`);
    expect(rows).toEqual([{ kind: "GRANT", n: 3 }]);
  },
);

test("PostgreSQL is killed and comes back in the middle of it: what was booked is granted once", {
  timeout: 120_000,
}, async () => {
  await using postgres = await startEngine("postgres");
  await using town = await openTown({ kind: "postgres", postgres });
  await town.fill();
  town.booking.start();
  await town.untilBooked(40);
  await postgres.kill();
  const before = town.booking.booked.length;
  await postgres.start();
  await town.untilBooked(before + 40);
  expect(await town.faults()).toEqual([]);
});

test("a reservation that failed is redriven, and the worker that grants it dies: it is granted once", {
  timeout: 60_000,
}, async () => {
  await using town = await openTown({ kind: "postgres", processes: [["api", "relay", "scheduler"]] });
  await town.fill();
  const { client, db } = town;
  const body = { user_id: fullUser, point_amount: 7, execute_at: new Date().toISOString() };
  const { id } = await client.told<{ id: string }>({ method: "POST", path: "/point/reserve", body });
  const untilIs = (status: string) =>
    until(`it is ${status}`, async () => (await client.reservation(id)).status === status, { withinMs: 30_000 });
  {
    await using _ = await town.start(["worker"]);
    await untilIs("FAILED");
  }
  expect((await client.reservation(id)).last_error).toContain("the most that can be counted");
  await client.told({ method: "PUT", path: "/point/sub", body: { user_id: fullUser, point_amount: 7 }, key: "room" });
  const letters = deadInboxEvents("points");
  const [letter] = await letters.list(db, { limit: 1 });
  await letters.redrive(db, [letter?.id ?? ""], { by: "flow", reason: "there is room now" });

  await town.dieAt({ name: "redrive.effect", hit: 1, role: "worker" });
  expect((await client.reservation(id)).status).toBe("FAILED");
  await using _ = await town.start(["worker"]);
  await untilIs("DONE");
  const { rows } = await db.query(`select kind, moved from point_transactions order by version`);
  expect(rows.slice(1)).toEqual([
    { kind: "SUB", moved: 7n },
    { kind: "GRANT", moved: 7n },
  ]);
  expect(await auditLedger(db)).toEqual([]);
});
