/** Engine faults: crash, stop and start, locked rows, terminated sessions. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Engine } from "@todoke/engines";
import { type Harness, waitForExit } from "../harness.ts";
import { getService } from "../services/index.ts";
import { everyProcess, everyService, type Fault, lasting } from "./fault.ts";

/** How long an engine takes to restart on a busy machine. */
const restartMs = { postgres: 3_000, nats: 1_500, rabbitmq: 12_000 };
/** RabbitMQ starts slowly; more faults would make the run one long outage. */
const weightFactor = { postgres: 1, nats: 1, rabbitmq: 0.5 };

const stopSignal = (engine: Engine): NodeJS.Signals => (engine.name === "postgres" ? "SIGINT" : "SIGTERM");

type EngineRole = "postgres" | "broker";

const getEngine = (harness: Harness, which: EngineRole): Engine =>
  which === "postgres" ? harness.postgres : harness.messageBroker;

const outage = (which: EngineRole, how: "crash" | "stop", weight: number): Fault => ({
  name: `${which} ${how}`,
  weight,
  // On the PostgreSQL bus the message broker is the database.
  targets: ({ bus }) => (which === "broker" && bus === "postgres" ? [] : [which]),
  plan: lasting(100, 1_000),
  aftermathMs: which === "broker" ? restartMs.rabbitmq : restartMs.postgres,
  async inject(harness, step) {
    const engine = getEngine(harness, which);
    if (engine.pid === undefined) return false;
    if (how === "crash") await engine.kill();
    else process.kill(engine.pid, stopSignal(engine));
    await waitForExit(engine);
    await sleep(step.forMs);
    await engine.start();
    return true;
  },
});

export const engineFaults: readonly Fault[] = [
  outage("postgres", "crash", 3),
  outage("postgres", "stop", 1.5),
  outage("broker", "crash", 3 * weightFactor.rabbitmq),
  outage("broker", "stop", 1.5 * weightFactor.rabbitmq),
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
