/**
 * Matchmaking as an operator runs it: processes of `todoke serve` on one database, with tickets in PostgreSQL or in Redis, and
 * the notification service. Processes can be killed or stopped at a failpoint, and Redis can lose data.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEngine } from "@todoke/engines";
import { testDatabase, until } from "@todoke/kernel/testing";
import * as matchmaking from "@todoke/matchmaking";
import * as notification from "@todoke/notification";
import { operatorClient } from "@todoke/redis/testing";
import { settingsFor } from "./all-services.ts";
import { failpointEnv, isStopped, type Step } from "./failpoint-env.ts";
import { findViolations, isAllNotified, readRecord } from "./matchmaking-invariants.ts";
import { createPlayers, openPlayerLoad } from "./player-load.ts";
import { type LaunchedProcess, launch, type ServiceProcess, serve } from "./service-process.ts";

export type Store = "postgres" | "redis";

/** A first-come-first-served mode, one with a skill rule, and one that never has enough players. */
const rules = `
modes:
  duel: {}
  ranked:
    skill: { attribute: skill, window: [{ after: 0, gap: 50 }] }
    heartbeat_seconds: 10
  lonely: { teams: 16, ticket_seconds: 6, heartbeat_seconds: 5 }
`;
const modes = ["duel", "ranked", "lonely"] as const;
const players = [
  ...createPlayers("duel", { count: 12, pollMs: 100 }),
  ...createPlayers("ranked", { count: 8, pollMs: 100 }),
  ...createPlayers("lonely", { count: 6, pollMs: 1_000 }),
];

export type { Step };

export type MatchmakingSetup = Awaited<ReturnType<typeof openMatchmaking>>;

export const openMatchmaking = (store: Store) =>
  openMatchmakingOn(store === "redis" ? openRedis : async () => undefined);

/** `openStore` opens a Redis with its data in a folder; without one, tickets are in PostgreSQL. */
export async function openMatchmakingOn<Redis extends TicketStore>(
  openStore: (folder: string) => Promise<Redis | undefined>,
) {
  await using parts = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "todoke-matchmaking-"));
  parts.defer(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "rules.yaml"), rules);
  const t = parts.use(await testDatabase({ sets: [] }));
  const redis = await openStore(join(folder, "redis"));
  parts.use(redis);
  const env = {
    ...settingsFor(t.url),
    EVENT_BUS_URL: t.url,
    MATCHMAKING_RULES: join(folder, "rules.yaml"),
    // Short, so that a dead relay's events are claimed again soon.
    MATCHMAKING_LEASE_MS: "2000",
    ...(redis && { MATCHMAKING_REDIS_URL: redis.url }),
  };
  for (const { migrate } of [matchmaking, notification]) await migrate(env, { dryRun: false });

  const running = new Set<ServiceProcess>();
  const processes = parts.use(new AsyncDisposableStack());
  const launchProcess = async (more: Record<string, string>) =>
    processes.use(await launch("matchmaking", { ...env, ...more }));
  /** Players call a process from when it serves until it exits. */
  async function addWhenServing(process: LaunchedProcess): Promise<void> {
    await process.serves();
    running.add(process);
    process.exited.then(() => running.delete(process));
  }
  async function start(more: Record<string, string> = {}): Promise<ServiceProcess> {
    const process = await launchProcess(more);
    await addWhenServing(process);
    return process;
  }
  parts.use(await serve("notification", env));
  await start();
  const playerLoad = openPlayerLoad(players, () => [...running].map(({ url }) => url));
  parts.defer(() => playerLoad.stop().catch(() => {})); // A test that came this far has seen the error.

  async function queuedTickets() {
    if (redis) return redis.queuedTickets();
    const { rows } = await t.db.query(`select ticket_id as "ticketId", user_id as user from matchmaking.tickets`);
    return rows as { ticketId: string; user: string }[];
  }

  /** Claimed ticket ends that are not acked, or transactions that wait for their process. */
  async function claimsInFlight(): Promise<readonly string[]> {
    if (redis) return redis.claimedEnds();
    const { rows } = await t.db.query(
      `select pid || ' since ' || xact_start as transaction from pg_stat_activity
        where datname = current_database() and state = 'idle in transaction'`,
    );
    return rows.map((row) => row.transaction);
  }

  async function killOneAt(step: Step): Promise<void> {
    const killed = await launchProcess(failpointEnv("kill", step));
    let code: number | null | undefined;
    killed.exited.then((exit) => (code = exit));
    addWhenServing(killed).catch(() => {}); // It may die at the failpoint before it serves.
    await until(`a process dies at ${step.name}`, () => code !== undefined, { withinMs: 120_000 });
    // An exit code instead of a signal means that it could not start; this throws its output.
    if (typeof code === "number") await killed.serves();
  }

  const all = parts.move();
  return {
    redis,
    playerLoad,
    start,
    /** Starts a process per failpoint, which dies there while players continue. */
    killAt: (...steps: readonly Step[]) => Promise.all(steps.map(killOneAt)),
    /** Starts a process without API that stops at this failpoint; resolves when others have taken over its work. */
    async stopAt(step: Step): Promise<ServiceProcess> {
      const stoppedProcess = await launchProcess({
        ...failpointEnv("stop", step),
        MATCHMAKING_ROLES: "matcher,recorder,relay",
      });
      await until(`a process stops at ${step.name}`, () => isStopped(stoppedProcess.pid), { withinMs: 120_000 });
      const held = new Set(await claimsInFlight());
      const isReleased = async () => (await claimsInFlight()).every((each) => !held.has(each));
      await until("other processes have taken over its work", isReleased);
      return stoppedProcess;
    },
    /** Stops the players, waits until all is recorded and notified, and returns what is wrong. */
    async violations({ redisLostData }: { readonly redisLostData: boolean }): Promise<readonly string[]> {
      await playerLoad.stop();
      // Ends that a dead process claimed in Redis are claimed again after ten seconds.
      const isQuiet = async () => (await (redis?.unrecorded() ?? 0)) === 0 && (await isAllNotified(t.db));
      await until("all is recorded and notified", isQuiet, { withinMs: 120_000 });
      const { responses } = playerLoad;
      return findViolations({
        responses,
        waiting: await queuedTickets(),
        record: await readRecord(t.db),
        redisLostData,
      });
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** A Redis, and what is in its queues. */
export interface TicketStore extends QueueReads, AsyncDisposable {
  /** As services get it. */
  readonly url: string;
}

export type RedisOperator = Awaited<ReturnType<typeof operatorClient>>;

export type QueueReads = ReturnType<typeof readQueues>;

/** Reads with a client of the primary. */
export function readQueues(withOperator: <T>(read: (operator: RedisOperator) => Promise<T>) => Promise<T>) {
  const key = (mode: string, name: string) => `mm:{${mode}}:${name}`;
  return {
    unrecorded: (): Promise<number> =>
      withOperator(async (operator) => {
        const lengths = await Promise.all(modes.map((mode) => operator.xLen(key(mode, "ends"))));
        return lengths.reduce((sum, length) => sum + length, 0);
      }),
    /** Ends that a recorder has claimed and not acked. */
    claimedEnds: (): Promise<readonly string[]> =>
      withOperator(async (operator) => {
        const pending = modes.map(async (mode) => {
          const entries = await operator.xPendingRange(key(mode, "ends"), "recorder", "-", "+", 1_000).catch(() => []);
          return entries.map(({ id }) => `${mode} ${id}`);
        });
        return (await Promise.all(pending)).flat();
      }),
    queuedTickets: () =>
      withOperator(async (operator) => {
        const found = await Promise.all(
          modes.map(async (mode) => {
            const ids = await operator.zRange(key(mode, "queue"), 0, -1);
            return ids.length > 0 ? operator.hmGet(key(mode, "tickets"), ids) : [];
          }),
        );
        return found.flat().map((record) => {
          const { id, user } = JSON.parse(record ?? "null");
          return { ticketId: id as string, user: user as string };
        });
      }),
  };
}

/** A Redis that can be restarted with its data, with older data, or empty. */
async function openRedis(folder: string) {
  await using parts = new AsyncDisposableStack();
  const [dir, snapshotDir] = [join(folder, "data"), join(folder, "snapshotDir")];
  const engine = parts.use(await startEngine("redis", { dir }));
  const operator = await operatorClient(engine.url);
  parts.defer(() => operator.destroy());

  async function restart(whileStopped: () => void = () => {}): Promise<void> {
    await engine.kill();
    whileStopped();
    await engine.start();
    await until("Redis answers", () => operator.ping().then(Boolean, () => false));
  }

  const all = parts.move();
  return {
    url: engine.url,
    operator,
    signal: (name: NodeJS.Signals) => void process.kill(engine.pid ?? 0, name),
    /** Restarts with its data; its file may lack the last second. */
    restart: () => restart(),
    restartEmpty: () =>
      restart(() => {
        rmSync(dir, { recursive: true });
        mkdirSync(dir);
      }),
    /** Copies its current data. */
    takeSnapshot: () => cpSync(dir, snapshotDir, { recursive: true }),
    /** Restarts with the data of the last snapshot, like a failover to a replica that lagged. */
    restartFromSnapshot: () =>
      restart(() => {
        rmSync(dir, { recursive: true });
        cpSync(snapshotDir, dir, { recursive: true });
        rmSync(snapshotDir, { recursive: true });
      }),
    ...readQueues((read) => read(operator)),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
