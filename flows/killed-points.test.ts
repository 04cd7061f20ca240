/**
 * Processes of points are killed with -9 at every step of scheduler, relay, worker and API, or fall asleep there, or believe
 * in a wrong time, or lose their database, while clients book grants. Whatever was answered is granted once, by the tables and
 * by the API; none comes early; and each is told once.
 */
import { type Engine, startEngine } from "@todoke/engines";
import { inboxDeadLetters } from "@todoke/kernel/inbox";
import { until } from "@todoke/kernel/testing";
import { auditLedger } from "@todoke/points/audit";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { clockSkewEnv } from "./failpoint-env.ts";
import { openPoints, type PointsOptions, type PointsSetup, type Role, type Step } from "./points.ts";
import { type Booked, endOf, fullUser } from "./points-booking.ts";

// Each starts and kills half a dozen processes: ten seconds at rest, and minutes where others want the machine too.
vi.setConfig({ testTimeout: 600_000 });

const hourMs = 3_600_000;

const at = (role: Role, name: string, hit = 2): Step => ({ role, name, hit });

/** Every step at which a crash matters, four processes at a time. */
const rounds: readonly (readonly Step[])[] = [
  [
    at("api", "batch.starting", 8),
    at("scheduler", "scheduler.dispatching"),
    at("relay", "relay.claimed"),
    at("worker", "consumer.received"),
  ],
  [
    at("api", "statement.sent", 8),
    // A look begins with recurring grants, and then takes what is due: every second transaction is that.
    at("scheduler", "transaction.commit-sent", 6),
    at("worker", "consumer.marked"),
    at("worker", "consumer.effect"),
  ],
  [
    at("api", "batch.done", 8),
    at("scheduler", "scheduler.dispatched"),
    at("relay", "relay.publishing"),
    at("worker", "grant.posted"),
  ],
  [
    at("relay", "relay.published"),
    at("worker", "transaction.commit-sent"),
    at("worker", "consumer.handled"),
    at("worker", "grant.failing", 1),
  ],
  [
    at("relay", "relay.settle-sent"),
    at("worker", "delivery.settled"),
    at("worker", "consumer.counted", 1),
    at("worker", "consumer.dead-lettered", 1),
  ],
];

/** Where a broker, and not a table, has the messages of the dead. */
const brokerRounds: typeof rounds = [
  [at("relay", "relay.published"), at("worker", "consumer.effect"), at("worker", "consumer.handled")],
  [at("relay", "relay.publish-sent"), at("worker", "consumer.acked"), at("worker", "grant.failing", 1)],
];

const titled = (all: typeof rounds) => all.map((steps) => [steps.map(({ name }) => name).join(", "), steps] as const);

/** One town for the tests of a group. */
function useTown(options: PointsOptions): () => PointsSetup {
  let setup: PointsSetup;
  beforeAll(async () => {
    setup = await openPoints(options);
  });
  afterAll(() => setup?.[Symbol.asyncDispose]());
  return () => setup;
}

describe.each([
  ["postgres", rounds],
  ["rabbitmq", brokerRounds],
] as const)("on %s", (kind, all) => {
  const theTown = useTown({ kind });

  test.each(titled(all))("killed at %s: what was booked is granted once, in time", async (_, steps) => {
    const setup = theTown();
    await setup.fill();
    setup.booking.start();
    await setup.dieAt(...steps);
    expect(await setup.faults()).toEqual([]);
  });
});

describe("where every process has a wrong clock", () => {
  const theTown = useTown({ kind: "postgres", processes: [] });

  test.each([
    { off: "an hour fast", byMs: hourMs },
    { off: "an hour slow", byMs: -hourMs },
  ])("$off: only the database's clock says what is due and what runs out", async ({ off, byMs }) => {
    const setup = theTown();
    await using _ = await setup.start(["api", "relay", "scheduler", "maintenance", "worker"], clockSkewEnv(byMs));
    const { client, db } = setup;
    const [user, laterUser] = [`u_${byMs}`, `u_later_${byMs}`];
    const book = async (user_id: string, dueInMs: number, endsInMs: number) => {
      const [execute_at, expires_at] = [dueInMs, endsInMs].map((ms) => new Date(Date.now() + ms).toISOString());
      const body = { user_id, point_amount: 5, execute_at, expires_at, reason: `${off}, ${dueInMs}` };
      return (await client.told<{ id: string }>({ method: "POST", path: "/point/reserve", body })).id;
    };
    const untilDone = (id: string) =>
      until("it is granted", async () => (await client.reservation(id)).status === "DONE");
    const later = await book(laterUser, hourMs / 2, hourMs);
    for (const dueInMs of [-hourMs / 2, 300, 0]) await untilDone(await book(user, dueInMs, hourMs / 2));

    // What was booked behind it has been granted since.
    expect((await client.reservation(later)).status).toBe("PENDING");
    expect(await client.confirm(laterUser)).toMatchObject({ balance: 0, pending: 5 });
    expect(await client.confirm(user)).toMatchObject({ balance: 15, pending: 0 });
    const { rows } = await db.query(`select kind, moved from point_transactions where user_id = $1`, [user]);
    expect(rows).toEqual(Array(3).fill({ kind: "GRANT", moved: 5n }));
  });
});

describe("on a PostgreSQL of its own", () => {
  let postgres: Engine;
  let setup: PointsSetup;
  beforeAll(async () => {
    postgres = await startEngine("postgres");
    setup = await openPoints({ kind: "postgres", postgres });
    await setup.fill();
  });
  afterAll(async () => {
    await setup?.[Symbol.asyncDispose]();
    await postgres?.[Symbol.asyncDispose]();
  });

  test("a scheduler that falls asleep in its turn holds nobody up for good, and changes nothing when it wakes", async () => {
    setup.booking.start();
    await using sleeper = await setup.sleepAt(at("scheduler", "scheduler.dispatching", 1));
    await setup.untilBooked(setup.booking.booked.length + 1);
    const { id, user } = setup.booking.booked.at(-1) as Booked;
    // The server ends a transaction whose process has been silent for ten seconds.
    const isEnded = async () => (await setup.client.reservation(id)).status === endOf(user);
    await until("others have ended what was booked since", isEnded);
    sleeper.signal("SIGCONT");
    await setup.untilBooked(setup.booking.booked.length + 20);
    expect(await setup.faults()).toEqual([]);
  });

  test("it is killed and comes back in the middle of everything: what was booked is granted once", async () => {
    setup.booking.start();
    await setup.untilBooked(setup.booking.booked.length + 40);
    await postgres.kill();
    const before = setup.booking.booked.length;
    await postgres.start();
    await setup.untilBooked(before + 40);
    expect(await setup.faults()).toEqual([]);
  });
});

test("a reservation that failed is redriven, and the worker that grants it dies: it is granted once", async () => {
  await using setup = await openPoints({ kind: "postgres", processes: [["api", "relay", "scheduler"]] });
  await setup.fill();
  const { client, db } = setup;
  const body = { user_id: fullUser, point_amount: 7, execute_at: new Date().toISOString() };
  const { id } = await client.told<{ id: string }>({ method: "POST", path: "/point/reserve", body });
  const untilIs = (status: string) =>
    until(`it is ${status}`, async () => (await client.reservation(id)).status === status);
  {
    await using _ = await setup.start(["worker"]);
    await untilIs("FAILED");
  }
  expect((await client.reservation(id)).last_error).toContain("the maximum is 2^63 - 1");
  await client.told({ method: "PUT", path: "/point/sub", body: { user_id: fullUser, point_amount: 7 }, key: "room" });
  const letters = inboxDeadLetters("points");
  const [letter] = await letters.list(db, { limit: 1 });
  await letters.redrive(db, [letter?.id ?? ""], { by: "flow", reason: "there is room now" });

  await setup.dieAt({ name: "redrive.effect", hit: 1, role: "worker" });
  expect((await client.reservation(id)).status).toBe("FAILED");
  await using _ = await setup.start(["worker"]);
  await untilIs("DONE");
  const { rows } = await db.query(`select kind, moved from point_transactions order by version`);
  expect(rows.slice(1)).toEqual([
    { kind: "SUB", moved: 7n },
    { kind: "GRANT", moved: 7n },
  ]);
  expect(await auditLedger(db)).toEqual([]);
});
