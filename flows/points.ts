/**
 * Points as an operator runs it: a process of `todoke serve` for each of its roles, on one database and one bus, with the
 * notification service behind it. Processes can be told to die or to fall asleep at an exact step, and to have a wrong clock.
 */
import type { Engine } from "@todoke/engines";
import { type Db, openDb } from "@todoke/kernel/db";
import { testDatabase, until } from "@todoke/kernel/testing";
import * as notification from "@todoke/notification";
import * as points from "@todoke/points";
import { type BusKind, startBroker } from "./buses.ts";
import { failpointEnv, isStopped, type Step as Place } from "./failpoint-env.ts";
import { endOf, fill, openBooking } from "./points-booking.ts";
import { apiKeys, clientOf, inParallel } from "./points-client.ts";
import { recordFaults, untilAllDone } from "./points-record.ts";
import { type Launched, launch, type Serving } from "./serving.ts";

export type Role = "api" | "relay" | "scheduler" | "maintenance" | "worker";

export interface Step extends Place {
  /** All that the process does. */
  readonly role: Role;
}

export interface PointsOptions {
  readonly kind: BusKind;
  /** A server that may be killed; without one, a database of its own on that of all tests. */
  readonly postgres?: Engine;
  /** The processes of points, each with its roles. */
  readonly processes?: readonly (readonly Role[])[];
}

export type PointsSetup = Awaited<ReturnType<typeof openPoints>>;

const apart: readonly (readonly Role[])[] = [["api", "relay", "maintenance"], ["scheduler"], ["worker"]];

export async function openPoints({ kind, postgres, processes = apart }: PointsOptions) {
  await using parts = new AsyncDisposableStack();
  const { url: databaseUrl, db } = parts.use(await openDatabase(postgres));
  const broker = parts.use(await startBroker(kind, databaseUrl));
  const env = {
    DATABASE_URL: databaseUrl,
    EVENT_BUS_URL: broker.url,
    TODOKE_API_KEYS: apiKeys,
    LOG_LEVEL: "silent",
    // A lost wake-up costs a second, and so does a dead relay.
    POINTS_SCHEDULER_SECONDS: "1",
    POINTS_LEASE_MS: "1000",
  };
  for (const { migrate } of [points, notification]) await migrate(env, { dryRun: false });

  const called = new Set<Serving>();
  const running = parts.use(new AsyncDisposableStack());
  const launchOne = async (roles: readonly Role[], more: Record<string, string> = {}) =>
    running.use(await launch("points", { ...env, POINTS_ROLES: roles.join(), ...more }));
  /** From when it serves until it ends, clients call it if it answers them. */
  async function welcome(process: Launched, roles: readonly Role[]): Promise<void> {
    await process.serves();
    if (!roles.includes("api")) return;
    called.add(process);
    process.exited.then(() => called.delete(process));
  }
  async function start(roles: readonly Role[], more: Record<string, string> = {}): Promise<Serving> {
    const process = await launchOne(roles, more);
    await welcome(process, roles);
    return process;
  }
  const teller = running.use(await launch("notification", env));
  await Promise.all([teller.serves(), ...processes.map((roles) => start(roles))]);
  const client = clientOf(() => [...called].map(({ url }) => url));
  const booking = openBooking(client);
  parts.defer(() => booking.stop().catch(() => {})); // A test that has got so far has heard of it.

  /** What a dead process held comes back when its lease ends: at once, here, and not in half a minute. */
  async function endLeasesOf(pid: number): Promise<void> {
    for (const table of ["inbox_dlq", ...(kind === "postgres" ? ["todoke_bus.bus_deliveries"] : [])]) {
      await db.query(
        `update ${table} set lease_until = clock_timestamp()
          where lease_until is not null and locked_by like '%:' || $1 || ':%'`,
        [pid],
      );
    }
  }

  /** Resolves when a process is dead, or is what `isThere` looks for. */
  async function untilThere(process: Launched, what: string, isThere: () => boolean): Promise<void> {
    let code: number | null | undefined;
    process.exited.then((exit) => (code = exit));
    await until(what, () => code !== undefined || isThere(), { withinMs: 120_000 });
    // One that ended by itself, and not by a signal, could not start: it says why.
    if (typeof code === "number") await process.serves();
  }

  async function dieAtOne({ role, ...step }: Step): Promise<void> {
    const doomed = await launchOne([role], failpointEnv("kill", step));
    welcome(doomed, [role]).catch(() => {}); // It may meet the step, and die, before it serves.
    await untilThere(doomed, `a process dies at ${step.name}`, () => false);
    await endLeasesOf(doomed.pid);
  }

  let looked = 0;
  /** What the API says of everything that was booked since the last look, and of everybody who ever got something. */
  async function shownFaults(): Promise<string[]> {
    const faults: string[] = [];
    const news = booking.booked.slice(looked);
    looked = booking.booked.length;
    await inParallel(news, async ({ id, user }) => {
      const { status } = await client.reservation(id);
      if (status !== endOf(user)) faults.push(`the API says that reservation ${id} of ${user} is ${status}`);
    });
    const due = Map.groupBy(booking.booked, ({ user }) => user);
    await inParallel(
      [...due].filter(([user]) => endOf(user) === "DONE"),
      async ([user, their]) => {
        const sum = their.reduce((all, { amount }) => all + amount, 0);
        const { balance, pending } = await client.confirm(user);
        if (balance !== sum || pending !== 0)
          faults.push(`${user} has ${balance} (${pending} to come) instead of ${sum}`);
      },
    );
    return faults;
  }

  const all = parts.move();
  return {
    db,
    client,
    booking,
    start,
    busUrl: broker.url,
    fill: () => fill(client),
    /** The user's notifications about points, as the notification service lists them. */
    async notificationsOf(user: string): Promise<readonly { event_type: string; data: Record<string, unknown> }[]> {
      const answer = await fetch(`${opsOf(teller)}/debug/notification/inbox/${user}`);
      return ((await answer.json()) as { notifications: [] }).notifications;
    },
    /** A further process for each step, which dies there while clients go on. */
    dieAt: (...steps: readonly Step[]) => Promise.all(steps.map(dieAtOne)),
    /** One more process, which falls asleep at this step. */
    async sleepAt({ role, ...step }: Step): Promise<Serving> {
      const sleeper = await launchOne([role], failpointEnv("stop", step));
      await untilThere(sleeper, `a process falls asleep at ${step.name}`, () => isStopped(sleeper.pid));
      return sleeper;
    },
    /** Resolves when so many are booked in all. */
    untilBooked: (count: number) => until(`${count} are booked`, () => booking.booked.length >= count),
    /** No more is booked, all that was is granted and told, and everything fits. */
    async faults(): Promise<readonly string[]> {
      await booking.stop();
      await untilAllDone(db);
      return [...(await recordFaults(db, booking.booked)), ...(await shownFaults())];
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

async function openDatabase(postgres: Engine | undefined): Promise<AsyncDisposable & { url: string; db: Db }> {
  if (!postgres) return testDatabase({ schema: "points", sets: [] });
  const { url } = postgres;
  const db = openDb({ url, schema: "points" });
  return { url, db, [Symbol.asyncDispose]: () => db.end() };
}

/** Its ops listener is 1000 ports above. */
function opsOf({ url }: Serving): string {
  const ops = new URL(url);
  ops.port = String(Number(ops.port) + 1_000);
  return ops.origin;
}
