/**
 * Matchmaking as an operator runs it: processes of `todoke serve` on one database, with tickets in PostgreSQL or in a Redis of
 * its own, and the notification service behind it. Processes can be told to die at an exact step, and Redis to forget.
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
import { faultsOf, isAllTold, readRecord } from "./played.ts";
import { openPlaying, playersOf } from "./playing.ts";
import { type Launched, launch, type Serving, serve } from "./serving.ts";

export type Store = "postgres" | "redis";

/** One mode in the order of waiting, one by conditions, and one in which nobody ever finds enough others. */
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
  ...playersOf("duel", { count: 12, lookMs: 40 }),
  ...playersOf("ranked", { count: 8, lookMs: 40 }),
  ...playersOf("lonely", { count: 6, lookMs: 1_000 }),
];

export type { Step };

export type MatchmakingSetup = Awaited<ReturnType<typeof openMatchmaking>>;

export async function openMatchmaking(store: Store) {
  await using parts = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "todoke-town-"));
  parts.defer(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "rules.yaml"), rules);
  const t = parts.use(await testDatabase({ sets: [] }));
  const redis = store === "redis" ? parts.use(await openRedis(join(folder, "redis"))) : undefined;
  const env = {
    ...settingsFor(t.url),
    EVENT_BUS_URL: t.url,
    MATCHMAKING_RULES: join(folder, "rules.yaml"),
    // A dead relay's events need not be waited for longer.
    MATCHMAKING_LEASE_MS: "2000",
    ...(redis && { MATCHMAKING_REDIS_URL: redis.url }),
  };
  for (const { migrate } of [matchmaking, notification]) await migrate(env, { dryRun: false });

  const running = new Set<Serving>();
  const processes = parts.use(new AsyncDisposableStack());
  const launchOne = async (more: Record<string, string>) =>
    processes.use(await launch("matchmaking", { ...env, ...more }));
  /** From when it serves until it ends, players call it. */
  async function welcome(process: Launched): Promise<void> {
    await process.serves();
    running.add(process);
    process.exited.then(() => running.delete(process));
  }
  async function start(more: Record<string, string> = {}): Promise<Serving> {
    const process = await launchOne(more);
    await welcome(process);
    return process;
  }
  parts.use(await serve("notification", env));
  await start();
  const playing = openPlaying(players, () => [...running].map(({ url }) => url));
  parts.defer(() => playing.goHome().catch(() => {})); // A test that has got so far has heard of it.

  async function waiting() {
    if (redis) return redis.waiting();
    const { rows } = await t.db.query(`select ticket_id as "ticketId", user_id as user from matchmaking.tickets`);
    return rows as { ticketId: string; user: string }[];
  }

  /** What somebody is in the middle of: ends that are taken and not struck off, or transactions that wait for their process. */
  async function underWay(): Promise<readonly string[]> {
    if (redis) return redis.taken();
    const { rows } = await t.db.query(
      `select pid || ' since ' || xact_start as transaction from pg_stat_activity
        where datname = current_database() and state = 'idle in transaction'`,
    );
    return rows.map((row) => row.transaction);
  }

  async function dieAtOne(step: Step): Promise<void> {
    const doomed = await launchOne(failpointEnv("kill", step));
    let code: number | null | undefined;
    doomed.exited.then((exit) => (code = exit));
    welcome(doomed).catch(() => {}); // It may meet the step, and die, before it serves.
    await until(`a process dies at ${step.name}`, () => code !== undefined, { withinMs: 120_000 });
    // One that ended by itself, and not by a signal, could not start: it says why.
    if (typeof code === "number") await doomed.serves();
  }

  const all = parts.move();
  return {
    redis,
    playing,
    start,
    /** A further process for each step, which dies there while everybody plays. */
    dieAt: (...steps: readonly Step[]) => Promise.all(steps.map(dieAtOne)),
    /** A second process, which no player calls, that falls asleep at this step, until others have done what it was at. */
    async sleepAt(step: Step): Promise<Serving> {
      const frozen = await launchOne({ ...failpointEnv("stop", step), MATCHMAKING_ROLES: "matcher,recorder,relay" });
      await until(`a process falls asleep at ${step.name}`, () => isStopped(frozen.pid), { withinMs: 120_000 });
      const held = new Set(await underWay());
      const isTakenOver = async () => (await underWay()).every((each) => !held.has(each));
      await until("others have taken over what it held", isTakenOver);
      return frozen;
    },
    /** Everybody goes home, all that is to be recorded and told has been, and everything fits. */
    async faults({ mayForget }: { readonly mayForget: boolean }): Promise<readonly string[]> {
      await playing.goHome();
      // What a dead process had taken from Redis is taken again after ten seconds.
      const isQuiet = async () => (await (redis?.unrecorded() ?? 0)) === 0 && (await isAllTold(t.db));
      await until("all is recorded and told", isQuiet, { withinMs: 120_000 });
      const { told } = playing;
      return faultsOf({ told, waiting: await waiting(), record: await readRecord(t.db), mayForget });
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** A Redis that can be stopped, and brought back with what it had, with what it once had, or with nothing. */
async function openRedis(folder: string) {
  await using parts = new AsyncDisposableStack();
  const [dir, kept] = [join(folder, "data"), join(folder, "kept")];
  const engine = parts.use(await startEngine("redis", { dir }));
  const operator = await operatorClient(engine.url);
  parts.defer(() => operator.destroy());
  const key = (mode: string, name: string) => `mm:{${mode}}:${name}`;

  async function restart(meanwhile: () => void = () => {}): Promise<void> {
    await engine.kill();
    meanwhile();
    await engine.start();
    await until("Redis answers", () => operator.ping().then(Boolean, () => false));
  }

  const all = parts.move();
  return {
    url: engine.url,
    operator,
    signal: (name: NodeJS.Signals) => void process.kill(engine.pid ?? 0, name),
    /** As it was at the last write but for the last second, which is what its file may lack. */
    restart: () => restart(),
    restartEmpty: () =>
      restart(() => {
        rmSync(dir, { recursive: true });
        mkdirSync(dir);
      }),
    /** Keeps a copy of what it has now. */
    keep: () => cpSync(dir, kept, { recursive: true }),
    /** As after the failover to a replica that lagged: everything since `keep` has not happened. */
    restartAsKept: () =>
      restart(() => {
        rmSync(dir, { recursive: true });
        cpSync(kept, dir, { recursive: true });
        rmSync(kept, { recursive: true });
      }),
    async unrecorded(): Promise<number> {
      const lengths = await Promise.all(modes.map((mode) => operator.xLen(key(mode, "ends"))));
      return lengths.reduce((sum, length) => sum + length, 0);
    },
    /** Ends that a recorder has taken, and not struck off yet. */
    async taken(): Promise<readonly string[]> {
      const pending = modes.map(async (mode) => {
        const entries = await operator.xPendingRange(key(mode, "ends"), "recorder", "-", "+", 1_000).catch(() => []);
        return entries.map(({ id }) => `${mode} ${id}`);
      });
      return (await Promise.all(pending)).flat();
    },
    async waiting() {
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
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
