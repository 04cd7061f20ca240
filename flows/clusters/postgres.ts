/**
 * `npm run interop -- clusters-postgres`: grants and notifications on a primary and a standby of PostgreSQL, with the bus in the same
 * database. The standby is promoted when the primary is killed, frozen, or still alive. It prints how long grants paused, and
 * exits with 1 if an answered grant was lost or doubled. With the argument `asynchronous` the standby is asynchronous, and the loss is counted.
 */
import { until } from "@todoke/kernel/testing";
import { openServiceBus } from "../buses.ts";
import {
  checkGrants,
  elapsed,
  type Faults,
  faultMs,
  formatTotals,
  measureFaults,
  printResult,
  startGrants,
  wait,
} from "./faults.ts";
import { findPgBasebackup, PostgresPair } from "./postgres-pair.ts";

const pgBasebackup = findPgBasebackup();
if (pgBasebackup === undefined) throw new Error("there is no pg_basebackup; on Debian: apt-get install postgresql");

/** An operator, or a program that watches the primary, needs a moment to decide. */
const decisionMs = 2_000;

async function openRun(isSynchronous: boolean) {
  await using parts = new AsyncDisposableStack();
  const pair = parts.use(await PostgresPair.start(pgBasebackup as string, { isSynchronous }));
  const { url } = pair;
  const run = parts.use(await startGrants({ databaseUrl: url, openBus: () => openServiceBus("postgres", url) }));
  const all = parts.move();
  return { pair, run, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

async function runSynchronous(): Promise<boolean> {
  await using opened = await openRun(true);
  const { pair, run } = opened;
  const { version } = pair.primary.engine;
  console.log(`PostgreSQL ${version}, a primary and a synchronous standby; the bus in the same database`);

  /** Commits that wait for a standby on a server that was replaced. They must never be answered. */
  async function showWaiting(): Promise<void> {
    const { rows } = await pair.standby.db.query(
      `select count(*)::int as waiting from pg_stat_activity where wait_event = 'SyncRep'`,
    );
    console.log(`  ${rows[0].waiting} commits wait on the old primary, which has no standby any more`);
  }

  const faults: Faults = {
    "no fault": () => elapsed(faultMs),
    "primary killed, standby promoted": async () => {
      await pair.primary.engine.kill();
      await elapsed(decisionMs);
      await pair.promote();
      await elapsed(faultMs);
      await pair.rejoin();
    },
    "standby promoted while the primary is alive; it is stopped after 10 s": async () => {
      await pair.promote();
      await elapsed(faultMs);
      await showWaiting();
      await pair.rejoin();
    },
    "primary frozen, standby promoted; it thaws after 10 s and is stopped 5 s later": async () => {
      await pair.primary.signal("SIGSTOP");
      await elapsed(decisionMs);
      await pair.promote();
      await elapsed(faultMs);
      await pair.standby.signal("SIGCONT");
      await elapsed(faultMs / 2);
      await showWaiting();
      await pair.rejoin();
    },
  };
  const rows = await measureFaults(faults, run);
  const totals = await checkGrants(run);
  printResult(rows, totals);
  return totals.lost + totals.doubled + totals.refused + totals.deadLetters === 0;
}

/** An asynchronous standby lacks the last commits. They are counted, and sent again as a client would that knows of the loss. */
async function runAsynchronous(): Promise<boolean> {
  await using opened = await openRun(false);
  const { pair, run } = opened;
  console.log(`PostgreSQL ${pair.primary.engine.version}, a primary and an asynchronous standby`);
  await until("grants are answered", () => run.load.results.length >= 100, wait);

  async function failOver(): Promise<void> {
    await pair.primary.engine.kill();
    await pair.promote();
  }
  const losses: Readonly<Record<string, () => Promise<void>>> = {
    "primary killed": failOver,
    "primary killed while the standby is one second behind": async () => {
      const { rows } = await pair.primary.db.query(`select pid from pg_stat_replication`);
      for (const { pid } of rows) process.kill(pid, "SIGSTOP"); // It sends nothing more.
      await elapsed(1_000);
      await failOver();
    },
  };
  console.log("| fault | answered before | of these lost | the same key again |\n|---|---|---|---|");
  for (const [name, inject] of Object.entries(losses)) {
    await inject();
    // What is answered from now on is on the new primary.
    const answered = run.load.results.map(({ user }) => user);
    const kept = new Set(await run.users("entitlement.entitlements"));
    const lost = answered.filter((user) => !kept.has(user));
    const statuses = await Promise.all(lost.map((user) => run.load.repeat(user)));
    console.log(`| ${name} | ${answered.length} | ${lost.length} | ${[...new Set(statuses)].join() || "none"} |`);
    await pair.rejoin();
  }
  const totals = await checkGrants(run);
  console.log(formatTotals(totals));
  return totals.lost + totals.doubled + totals.refused === 0;
}

const isCorrect = process.argv[2] === "asynchronous" ? await runAsynchronous() : await runSynchronous();
process.exitCode = isCorrect ? 0 : 1;
