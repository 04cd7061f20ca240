/** Engine faults: crash, stop and start, locked rows, terminated sessions. */
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Engine } from "@todoke/engines";
import type { Db } from "@todoke/kernel/db";
import { type Harness, waitForExit } from "../harness.ts";
import { getService } from "../services/index.ts";
import { everyProcess, everyService, type Fault, lasting, type Plan } from "./fault.ts";

/** How long an engine takes to restart on a busy machine. */
const restartMs = { postgres: 3_000, nats: 1_500, rabbitmq: 12_000, redis: 1_500 };
/** RabbitMQ starts slowly; more faults would make the run one long outage. */
const weightFactor = { postgres: 1, nats: 1, rabbitmq: 0.5 };

const stopSignal = (engine: Engine): NodeJS.Signals => (engine.name === "postgres" ? "SIGINT" : "SIGTERM");

type EngineRole = "postgres" | "broker" | "redis";

const getEngine = ({ postgres, messageBroker, redis }: Harness, which: EngineRole): Engine | undefined =>
  ({ postgres, broker: messageBroker, redis })[which];

/** Matchmaking's queue is in Redis on every bus but PostgreSQL. */
const redisOf = ({ bus, processes }: Plan): string[] =>
  bus !== "postgres" && processes.some(({ service }) => service === "matchmaking") ? ["redis"] : [];

const isRunning = (which: EngineRole, plan: Plan): boolean => {
  if (which === "redis") return redisOf(plan).length > 0;
  // On the PostgreSQL bus the message broker is the database.
  return which === "postgres" || plan.bus !== "postgres";
};

const outage = (which: EngineRole, how: "crash" | "stop", weight: number): Fault => ({
  name: `${which} ${how}`,
  weight,
  targets: (plan) => (isRunning(which, plan) ? [which] : []),
  plan: lasting(100, 1_000),
  aftermathMs: restartMs[which === "broker" ? "rabbitmq" : which],
  async inject(harness, step) {
    const engine = getEngine(harness, which);
    if (engine?.pid === undefined) return false;
    if (how === "crash") await engine.kill();
    else process.kill(engine.pid, stopSignal(engine));
    await waitForExit(engine);
    await sleep(step.forMs);
    await engine.start();
    return true;
  },
});

/** Returns false if the server was unavailable. */
async function flush({ url }: Engine): Promise<boolean> {
  const { hostname, port, password } = new URL(url);
  const socket = connect(Number(port), hostname);
  try {
    socket.end(`AUTH ${decodeURIComponent(password)}\r\nFLUSHALL\r\nQUIT\r\n`);
    return (await text(socket)).startsWith("+OK\r\n+OK");
  } catch {
    return false;
  }
}

/** Switches a setting of the server on for a while, for every session. */
async function setForAWhile(server: Db, setting: string, forMs: number): Promise<boolean> {
  const apply = async (statement: string) => {
    await server.query(statement);
    await server.query("select pg_reload_conf()");
  };
  try {
    await apply(`alter system set ${setting} = on`);
  } catch {
    return false;
  }
  await sleep(forMs);
  // The server may be restarting.
  for (let attempt = 0; ; attempt++) {
    try {
      await apply(`alter system reset ${setting}`);
      return true;
    } catch (error) {
      if (attempt === 100) throw error;
      await sleep(100);
    }
  }
}

/** A transaction that reads: it keeps every dead row that it could see. */
async function holdSnapshot(db: Db, forMs: number): Promise<boolean> {
  const client = await db.connect().catch(() => undefined);
  try {
    await client?.query("begin isolation level repeatable read");
    await client?.query("select pg_current_xact_id()");
    await sleep(forMs);
    await client?.query("rollback");
    return client !== undefined;
  } catch {
    return false; // The database became unavailable.
  } finally {
    client?.release(true);
  }
}

export const engineFaults: readonly Fault[] = [
  outage("postgres", "crash", 3),
  outage("postgres", "stop", 1.5),
  outage("broker", "crash", 3 * weightFactor.rabbitmq),
  outage("broker", "stop", 1.5 * weightFactor.rabbitmq),
  outage("redis", "crash", 2),
  outage("redis", "stop", 1),
  {
    name: "redis flushed",
    weight: 2,
    targets: redisOf,
    aftermathMs: 500,
    inject: async ({ redis }) => redis !== undefined && flush(redis),
  },
  {
    name: "postgres read-only",
    weight: 2,
    targets: () => ["postgres"],
    plan: lasting(300, 2_000),
    aftermathMs: 1_000,
    inject: ({ databases }, { forMs }) => setForAWhile(databases.server, "default_transaction_read_only", forMs),
  },
  {
    name: "long transaction",
    weight: 2,
    targets: everyService,
    plan: lasting(2_000, 8_000),
    aftermathMs: 500,
    inject: ({ databases }, { target, forMs }) => holdSnapshot(databases.of(target), forMs),
  },
  {
    name: "order broker crash",
    weight: 3,
    targets: () => ["order broker"],
    plan: lasting(100, 1_500),
    aftermathMs: 1_000,
    async inject({ orderBroker }, { forMs }) {
      await orderBroker.kill();
      await sleep(forMs);
      await orderBroker.start();
      return true;
    },
  },
  {
    name: "rows locked",
    weight: 3,
    targets: everyService,
    plan: lasting(300, 3_000),
    aftermathMs: 500,
    async inject({ databases }, { target, forMs }) {
      const client = await databases
        .of(target)
        .connect()
        .catch(() => undefined);
      try {
        await client?.query("begin isolation level repeatable read");
        await client?.query(getService(target).lock);
        await sleep(forMs);
        await client?.query("rollback");
        return client !== undefined;
      } catch {
        return false; // The database became unavailable.
      } finally {
        client?.release(true);
      }
    },
  },
  {
    name: "sessions terminated",
    weight: 6,
    targets: everyProcess,
    plan: (random) => ({ forMs: 0, detail: { sessions: random.between(1, 6) } }),
    aftermathMs: 500,
    async inject({ databases }, { target, detail }) {
      const text = `select pg_terminate_backend(pid) from pg_stat_activity where usename = $1 order by random() limit $2`;
      const { rowCount } = await databases.server.query(text, [target, detail.sessions]).catch(() => ({ rowCount: 0 }));
      return (rowCount ?? 0) > 0;
    },
  },
];
