/**
 * The points service as an operator runs it: a process of `todoke serve` per role, on one database and one bus, with the
 * notification service. Processes can be killed or stopped at a failpoint, or have a wrong clock.
 */
import type { Engine } from "@todoke/engines";
import { type Db, openDb } from "@todoke/kernel/db";
import { testDatabase, until } from "@todoke/kernel/testing";
import * as notification from "@todoke/notification";
import * as points from "@todoke/points";
import { type BusKind, startMessageBroker } from "./buses.ts";
import { type Step as FailpointHit, failpointEnv, isStopped } from "./failpoint-env.ts";
import { apiKeys, createPointsClient, inParallel } from "./points-client.ts";
import { recordViolations, waitUntilAllDone } from "./points-invariants.ts";
import { expectedStatus, fillFullUser, openReservationLoad } from "./reservation-load.ts";
import { type LaunchedProcess, launch, type ServiceProcess } from "./service-process.ts";

export type Role = "api" | "relay" | "scheduler" | "maintenance" | "worker";

export interface Step extends FailpointHit {
  readonly role: Role;
  /** Further roles of the process. */
  readonly roles?: readonly Role[];
}

export interface PointsOptions {
  readonly kind: BusKind;
  /** A server that may be killed. Default: a database on the shared server. */
  readonly postgres?: Engine;
  /** The processes of points, each with its roles. */
  readonly processes?: readonly (readonly Role[])[];
}

export type PointsSetup = Awaited<ReturnType<typeof openPoints>>;

const defaultProcesses: readonly (readonly Role[])[] = [["api", "relay", "maintenance"], ["scheduler"], ["worker"]];

export async function openPoints({ kind, postgres, processes = defaultProcesses }: PointsOptions) {
  await using parts = new AsyncDisposableStack();
  const { url: databaseUrl, db } = parts.use(await openDatabase(postgres));
  const messageBroker = parts.use(await startMessageBroker(kind, databaseUrl));
  const env = {
    DATABASE_URL: databaseUrl,
    EVENT_BUS_URL: messageBroker.url,
    TODOKE_API_KEYS: apiKeys,
    LOG_LEVEL: "silent",
    // Short, so that a lost wake-up or a dead relay costs one second.
    POINTS_SCHEDULER_SECONDS: "1",
    POINTS_LEASE_MS: "1000",
  };
  for (const { migrate } of [points, notification]) await migrate(env, { dryRun: false });

  const apiProcesses = new Set<ServiceProcess>();
  const running = parts.use(new AsyncDisposableStack());
  const launchProcess = async (roles: readonly Role[], more: Record<string, string> = {}) =>
    running.use(await launch("points", { ...env, POINTS_ROLES: roles.join(), ...more }));
  /** Clients call an API process from when it serves until it exits. */
  async function addWhenServing(process: LaunchedProcess, roles: readonly Role[]): Promise<void> {
    await process.serves();
    if (!roles.includes("api")) return;
    apiProcesses.add(process);
    process.exited.then(() => apiProcesses.delete(process));
  }
  async function start(roles: readonly Role[], more: Record<string, string> = {}): Promise<ServiceProcess> {
    const process = await launchProcess(roles, more);
    await addWhenServing(process, roles);
    return process;
  }
  const notificationProcess = running.use(await launch("notification", env));
  await Promise.all([notificationProcess.serves(), ...processes.map((roles) => start(roles))]);
  const client = createPointsClient(() => [...apiProcesses].map(({ url }) => url));
  const reservations = openReservationLoad(client);
  parts.defer(() => reservations.stop().catch(() => {})); // A test that came this far has seen the error.

  /** Expires the leases of a dead process now, instead of in half a minute. */
  async function expireLeases(pid: number): Promise<void> {
    for (const table of ["inbox_dlq", ...(kind === "postgres" ? ["todoke_bus.bus_deliveries"] : [])]) {
      await db.query(
        `update ${table} set lease_until = clock_timestamp()
          where lease_until is not null and locked_by like '%:' || $1 || ':%'`,
        [pid],
      );
    }
  }

  /** Resolves when the process has exited or `isThere` returns true. */
  async function waitForExitOr(process: LaunchedProcess, description: string, isThere: () => boolean): Promise<void> {
    let code: number | null | undefined;
    process.exited.then((exit) => (code = exit));
    await until(description, () => code !== undefined || isThere(), { withinMs: 120_000 });
    // An exit code instead of a signal means that it could not start; this throws its output.
    if (typeof code === "number") await process.serves();
  }

  async function killOneAt({ role, roles: more = [], ...step }: Step): Promise<void> {
    const roles = [role, ...more];
    const killed = await launchProcess(roles, failpointEnv("kill", step));
    addWhenServing(killed, roles).catch(() => {}); // It may die at the failpoint before it serves.
    await waitForExitOr(killed, `a process dies at ${step.name}`, () => false);
    await expireLeases(killed.pid);
  }

  let checkedCount = 0;
  /** Compares the API's reservations since the last check, and every user's balance, with what was accepted. */
  async function apiViolations(): Promise<string[]> {
    const violations: string[] = [];
    const unchecked = reservations.accepted.slice(checkedCount);
    checkedCount = reservations.accepted.length;
    await inParallel(unchecked, async ({ id, user }) => {
      const { status } = await client.reservation(id);
      if (status !== expectedStatus(user))
        violations.push(`the API reports that reservation ${id} of ${user} is ${status}`);
    });
    const due = Map.groupBy(reservations.accepted, ({ user }) => user);
    await inParallel(
      [...due].filter(([user]) => expectedStatus(user) === "DONE"),
      async ([user, their]) => {
        const sum = their.reduce((all, { amount }) => all + amount, 0);
        const { balance, pending } = await client.confirm(user);
        if (balance !== sum || pending !== 0)
          violations.push(`${user} has ${balance} (${pending} to come) instead of ${sum}`);
      },
    );
    return violations;
  }

  const all = parts.move();
  return {
    db,
    client,
    reservations,
    start,
    busUrl: messageBroker.url,
    fill: () => fillFullUser(client),
    /** The user's notifications about points, as the notification service lists them. */
    async notificationsOf(user: string): Promise<readonly { event_type: string; data: Record<string, unknown> }[]> {
      const response = await fetch(`${opsUrl(notificationProcess)}/debug/notification/inbox/${user}`);
      return ((await response.json()) as { notifications: [] }).notifications;
    },
    /** Starts a process per failpoint, which dies there while clients continue. */
    killAt: (...steps: readonly Step[]) => Promise.all(steps.map(killOneAt)),
    /** Starts a process that is stopped at this failpoint. */
    async stopAt({ role, ...step }: Step): Promise<ServiceProcess> {
      const stoppedProcess = await launchProcess([role], failpointEnv("stop", step));
      await waitForExitOr(stoppedProcess, `a process stops at ${step.name}`, () => isStopped(stoppedProcess.pid));
      return stoppedProcess;
    },
    /** Resolves when `count` reservations are accepted in total. */
    waitForAccepted: (count: number) =>
      until(`${count} reservations are accepted`, () => reservations.accepted.length >= count),
    /** Stops the load, waits until all is granted and notified, and returns what is wrong. */
    async violations(): Promise<readonly string[]> {
      await reservations.stop();
      await waitUntilAllDone(db);
      return [...(await recordViolations(db, reservations.accepted)), ...(await apiViolations())];
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

/** The ops listener is 1,000 ports above. */
function opsUrl({ url }: ServiceProcess): string {
  const ops = new URL(url);
  ops.port = String(Number(ops.port) + 1_000);
  return ops.origin;
}
