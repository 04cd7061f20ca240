/**
 * `npm run interop -- clusters`: grants and notifications on a NATS cluster of three servers with three copies of every stream, while
 * servers are killed, frozen and restarted. It prints how long notifications paused, and exits with 1 if a grant was lost, doubled
 * or refused. docs/guides/clusters.md has the last result.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { openNatsBus } from "@todoke/bus-nats";
import { type Engine, startEngine } from "@todoke/engines";
import * as entitlement from "@todoke/entitlement";
import { freePort, until } from "@todoke/kernel/testing";
import * as notification from "@todoke/notification";
import pg from "pg";
import { grantEnv, startGrantLoad } from "./grant-load.ts";

const perSecond = 50;
/** How long a fault lasts. */
const faultMs = 10_000;
const wait = { withinMs: 120_000 };

await using parts = new AsyncDisposableStack();
const postgres = parts.use(await startEngine("postgres"));
const members = await startCluster();
const urls = members.map(({ engine }) => engine.url);
console.log(`nats-server ${members[0]?.engine.version}, three servers, three copies; PostgreSQL ${postgres.version}`);

const busUrl = `nats://${urls.map((url) => new URL(url).host).join()}?replicas=3`;
const env = { ...grantEnv, DATABASE_URL: postgres.url, ENTITLEMENT_PORT: "0", NOTIFICATION_PORT: "0" };
const openBus = (name: string) => openNatsBus({ url: busUrl, name });
await entitlement.migrate(env, { dryRun: false });
await notification.migrate(env, { dryRun: false });
const grantService = parts.use(await entitlement.start(env, { openBus }));
parts.use(await notification.start(env, { openBus }));
const db = new pg.Pool({ connectionString: postgres.url, max: 2 });
parts.defer(() => db.end());
const count = async (what: string) => Number((await db.query(`select count(*) from ${what}`)).rows[0].count);
const sent = () => count(`notification.notifications where status = 'SENT'`);
const unpublished = () => count(`entitlement.outbox_events where status <> 'PUBLISHED'`);

const load = startGrantLoad(perSecond, () => [grantService.url], { responseMsMax: 15_000 });
await until("notifications are sent", async () => (await sent()) >= perSecond, wait);

interface Member {
  readonly engine: Engine;
  /** The name by which the cluster knows it. */
  readonly name: string;
}

async function startCluster(): Promise<readonly Member[]> {
  const ports = await Promise.all([freePort(), freePort(), freePort()]);
  const routes = ports.map((port) => `nats-route://127.0.0.1:${port}`).join(", ");
  const engines = await Promise.all(
    ports.map((port) =>
      startEngine("nats", {
        settings: { cluster: `{ name: todoke, host: "127.0.0.1", port: ${port}, routes: [${routes}] }` },
      }),
    ),
  );
  for (const engine of engines) parts.use(engine);
  const named = await Promise.all(
    engines.map(async (engine) => {
      const connection = await connect({ servers: engine.url });
      const name = connection.info?.server_name ?? "";
      await connection.close();
      return { engine, name };
    }),
  );
  // The servers elect a leader of their metadata before they can store anything.
  await until("the cluster can store streams", () => isReady(named), wait);
  return named;
}

async function isReady(all: readonly Member[]): Promise<boolean> {
  const connection = await connect({ servers: all.map(({ engine }) => engine.url) });
  try {
    const streams = await jetstreamManager(connection);
    await streams.streams.add({ name: "PROBE", subjects: ["probe"], num_replicas: 3 });
    return await streams.streams.delete("PROBE");
  } catch {
    return false;
  } finally {
    await connection.close();
  }
}

/** The server that leads the stream of grants. */
async function leader(): Promise<Member> {
  const connection = await connect({ servers: urls });
  try {
    const { cluster } = await (await jetstreamManager(connection)).streams.info("ENTITLEMENT");
    const found = members.find(({ name }) => name === cluster?.leader);
    if (!found) throw new Error(`no server is called ${cluster?.leader}`);
    return found;
  } finally {
    await connection.close();
  }
}

/** The longest time without progress, in ms, as long as it is watched. */
function watchPauses(progress: () => Promise<number>) {
  let [seen, since, longest, isWatching] = [-1, performance.now(), 0, true];
  const watching = (async () => {
    while (isWatching) {
      const now = await progress();
      longest = Math.max(longest, performance.now() - since);
      if (now > seen) [seen, since] = [now, performance.now()];
      await sleep(20);
    }
  })();
  return async () => {
    isWatching = false;
    await watching;
    return longest;
  };
}

const elapsed = (ms: number) => {
  const end = performance.now() + ms;
  return until("the fault has lasted", () => performance.now() >= end, { withinMs: 2 * ms + 10_000 });
};

const killFor = async (victims: readonly Engine[]) => {
  await Promise.all(victims.map((engine) => engine.kill()));
  await elapsed(faultMs);
  await Promise.all(victims.map((engine) => engine.start()));
};

const faults: Readonly<Record<string, () => Promise<void>>> = {
  "no fault": () => elapsed(faultMs),
  "leader killed, back after 10 s": async () => killFor([(await leader()).engine]),
  "leader frozen for 10 s": async () => {
    const { pid } = (await leader()).engine;
    process.kill(pid as number, "SIGSTOP");
    await elapsed(faultMs).finally(() => process.kill(pid as number, "SIGCONT"));
  },
  "two of three killed, back after 10 s": async () => {
    const first = await leader();
    const other = members.find((each) => each !== first) as Member;
    await killFor([first.engine, other.engine]);
  },
  "each restarted, one after the other": async () => {
    for (const { engine } of members) {
      await engine.kill();
      await engine.start();
      await elapsed(faultMs / 2);
    }
  },
};

const seconds = (ms: number) => (ms / 1_000).toFixed(1);
const rows: string[] = [];
for (const [name, fault] of Object.entries(faults)) {
  const notified = watchPauses(sent);
  const answered = watchPauses(async () => load.results.length);
  await fault();
  const endedAt = performance.now();
  await until(`the backlog is gone after: ${name}`, async () => (await unpublished()) < perSecond, wait);
  const drained = performance.now() - endedAt;
  const granted = load.results.length;
  await until("they are notified", async () => (await sent()) >= granted, wait);
  rows.push(`| ${name} | ${seconds(await answered())} | ${seconds(await notified())} | ${seconds(drained)} |`);
  console.log(rows.at(-1));
}

await load.stop();
const users = load.results.map(({ user }) => user).sort();
await until("every user is notified", async () => (await sent()) >= users.length, wait);
const notifiedUsers = await db.query(`select user_id from notification.notifications order by user_id collate "C"`);
const notified = notifiedUsers.rows.map(({ user_id }) => user_id as string);
const lost = users.filter((user) => !notified.includes(user)).length;
const doubled = notified.length - new Set(notified).size;
const refused = load.results.filter(({ status, attempts }) => status !== 201 || attempts > 1).length;
const dead =
  (await count(`notification.inbox_dlq`)) + (await count(`entitlement.outbox_events where status = 'FAILED'`));
console.log(`| fault | longest pause of answers, s | longest pause of notifications, s | backlog gone after, s |
|---|---|---|---|
${rows.join("\n")}

${users.length} grants: ${lost} lost, ${doubled} doubled, ${refused} refused or repeated, ${dead} dead letters`);
process.exitCode = lost + doubled + refused + dead > 0 ? 1 : 0;
