/**
 * Processes of points are killed or stopped at every failpoint of scheduler, relay, worker and API, have a wrong clock, or lose
 * their database, while clients reserve grants. Every accepted reservation is granted once, not early, and notified once.
 */
import { type Engine, startEngine } from "@todoke/engines";
import { inboxDeadLetters } from "@todoke/kernel/inbox";
import { until } from "@todoke/kernel/testing";
import { auditLedger } from "@todoke/points/audit";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { clockSkewEnv } from "./failpoint-env.ts";
import { openPoints, type PointsOptions, type PointsSetup, type Role, type Step } from "./points.ts";
import { expectedStatus, fullUser, type Reservation } from "./reservation-load.ts";

// Each test starts and kills six processes: ten seconds on an idle machine, minutes on a busy one.
vi.setConfig({ testTimeout: 600_000 });

const hourMs = 3_600_000;

const at = (role: Role, name: string, hit = 2): Step => ({ role, name, hit });
/** In a process that publishes and consumes in transactions of the database of its bus. */
const inTransaction = (role: Role, name: string): Step => ({ ...at(role, name), inTransactions: true });
/** In a process that is scheduler and worker, and so grants due reservations itself. */
const granting = (name: string): Step => ({ ...inTransaction("scheduler", name), roles: ["worker"] });

/** The failpoints, four processes at a time. */
const rounds: readonly (readonly Step[])[] = [
  [
    at("api", "batch.starting", 8),
    at("scheduler", "scheduler.dispatching"),
    at("relay", "relay.claimed"),
    at("worker", "consumer.received"),
  ],
  [
    at("api", "statement.sent", 8),
    at("scheduler", "transaction.commit-sent", 3),
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
  [
    inTransaction("relay", "relay.moving"),
    inTransaction("relay", "relay.moved"),
    inTransaction("worker", "consumer.effect"),
    inTransaction("worker", "transaction.commit-sent"),
  ],
  [granting("scheduler.granting"), granting("grant.posted"), granting("scheduler.granted")],
];

/** Failpoints that matter with a message broker, which keeps the messages of a dead process. */
const brokerRounds: typeof rounds = [
  [at("relay", "relay.published"), at("worker", "consumer.effect"), at("worker", "consumer.handled")],
  [at("relay", "relay.publish-sent"), at("worker", "consumer.acked"), at("worker", "grant.failing", 1)],
];

const titled = (all: typeof rounds) => all.map((steps) => [steps.map(({ name }) => name).join(", "), steps] as const);

/** One setup for the tests of a group. */
function useSetup(options: PointsOptions): () => PointsSetup {
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
  const getSetup = useSetup({ kind });

  test.each(titled(all))("killed at %s: every reservation is granted once, not early", async (_, steps) => {
    const setup = getSetup();
    await setup.fill();
    setup.reservations.start();
    await setup.killAt(...steps);
    expect(await setup.violations()).toEqual([]);
  });
});

describe("with a wrong clock in every process", () => {
  const getSetup = useSetup({ kind: "postgres", processes: [] });

  test.each([
    { off: "an hour fast", byMs: hourMs },
    { off: "an hour slow", byMs: -hourMs },
  ])("$off: the database's clock decides what is due and what expires", async ({ off, byMs }) => {
    const setup = getSetup();
    await using _ = await setup.start(["api", "relay", "scheduler", "maintenance", "worker"], clockSkewEnv(byMs));
    const { client, db } = setup;
    const [user, laterUser] = [`u_${byMs}`, `u_later_${byMs}`];
    const reserve = async (user_id: string, dueInMs: number, endsInMs: number) => {
      const [execute_at, expires_at] = [dueInMs, endsInMs].map((ms) => new Date(Date.now() + ms).toISOString());
      const body = { user_id, point_amount: 5, execute_at, expires_at, reason: `${off}, ${dueInMs}` };
      return (await client.request<{ id: string }>({ method: "POST", path: "/point/reserve", body })).id;
    };
    const waitUntilDone = (id: string) =>
      until("it is granted", async () => (await client.reservation(id)).status === "DONE");
    const later = await reserve(laterUser, hourMs / 2, hourMs);
    for (const dueInMs of [-hourMs / 2, 300, 0]) await waitUntilDone(await reserve(user, dueInMs, hourMs / 2));

    // Later reservations have been granted by now.
    expect((await client.reservation(later)).status).toBe("PENDING");
    expect(await client.confirm(laterUser)).toMatchObject({ balance: 0, pending: 5 });
    expect(await client.confirm(user)).toMatchObject({ balance: 15, pending: 0 });
    const { rows } = await db.query(`select kind, moved from point_transactions where user_id = $1`, [user]);
    expect(rows).toEqual(Array(3).fill({ kind: "GRANT", moved: 5n }));
  });
});

describe("with its own PostgreSQL server", () => {
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

  test("a stopped scheduler loses its lock after 10 s and changes nothing when it resumes", async () => {
    setup.reservations.start();
    await using stoppedProcess = await setup.stopAt(at("scheduler", "scheduler.dispatching", 1));
    await setup.waitForAccepted(setup.reservations.accepted.length + 1);
    const { id, user } = setup.reservations.accepted.at(-1) as Reservation;
    // The server ends a transaction that is idle for ten seconds.
    const isEnded = async () => (await setup.client.reservation(id)).status === expectedStatus(user);
    await until("later reservations have ended", isEnded);
    stoppedProcess.signal("SIGCONT");
    await setup.waitForAccepted(setup.reservations.accepted.length + 20);
    expect(await setup.violations()).toEqual([]);
  });

  test("every reservation is granted once after PostgreSQL is killed and restarted", async () => {
    setup.reservations.start();
    await setup.waitForAccepted(setup.reservations.accepted.length + 40);
    await postgres.kill();
    const before = setup.reservations.accepted.length;
    await postgres.start();
    await setup.waitForAccepted(before + 40);
    expect(await setup.violations()).toEqual([]);
  });
});

test("a redriven reservation is granted once when its worker dies", async () => {
  await using setup = await openPoints({ kind: "postgres", processes: [["api", "relay", "scheduler"]] });
  await setup.fill();
  const { client, db } = setup;
  const body = { user_id: fullUser, point_amount: 7, execute_at: new Date().toISOString() };
  const { id } = await client.request<{ id: string }>({ method: "POST", path: "/point/reserve", body });
  const waitForStatus = (status: string) =>
    until(`it is ${status}`, async () => (await client.reservation(id)).status === status);
  {
    await using _ = await setup.start(["worker"]);
    await waitForStatus("FAILED");
  }
  expect((await client.reservation(id)).last_error).toContain("the maximum is 2^63 - 1");
  await client.request({
    method: "PUT",
    path: "/point/sub",
    body: { user_id: fullUser, point_amount: 7 },
    key: "room",
  });
  const deadLetters = inboxDeadLetters("points");
  const [deadLetter] = await deadLetters.list(db, { limit: 1 });
  await deadLetters.redrive(db, [deadLetter?.id ?? ""], { by: "flow", reason: "there is room now" });

  await setup.killAt({ name: "redrive.effect", hit: 1, role: "worker" });
  expect((await client.reservation(id)).status).toBe("FAILED");
  await using _ = await setup.start(["worker"]);
  await waitForStatus("DONE");
  const { rows } = await db.query(`select kind, moved from point_transactions order by version`);
  expect(rows.slice(1)).toEqual([
    { kind: "SUB", moved: 7n },
    { kind: "GRANT", moved: 7n },
  ]);
  expect(await auditLedger(db)).toEqual([]);
});
