/** The dependencies of the routes, and the queue behind them. */
import type { Authenticate } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import type { Outbox } from "@todoke/kernel/outbox";
import type { Wakeups } from "@todoke/kernel/worker";
import { connectRedis, createScript } from "@todoke/redis";
import { cancelTicket } from "./commands/cancel-ticket.ts";
import { getCurrentTicket } from "./commands/get-current-ticket.ts";
import { getQueueStats } from "./commands/get-queue-stats.ts";
import { getTicket } from "./commands/get-ticket.ts";
import { heartbeatTicket } from "./commands/heartbeat-ticket.ts";
import { joinQueue } from "./commands/join-queue.ts";
import { joinQueueForUser } from "./commands/join-queue-for-user.ts";
import { listQueues } from "./commands/list-queues.ts";
import { listTickets } from "./commands/list-tickets.ts";
import { simulateMode } from "./commands/simulate-mode.ts";
import { unknownMode } from "./problems.ts";
import type { TicketQueue } from "./queue/index.ts";
import { openPostgresQueue } from "./queue/postgres/index.ts";
import { createQueueFigures } from "./queue/queue-figures.ts";
import { openRedisQueue } from "./queue/redis/redis-queue.ts";
import type { TicketIds } from "./queue/ticket-id.ts";
import type { ModeRules, Rules } from "./rules/index.ts";
import { countDependencyError, countEnds, observeEndsBacklog } from "./telemetry.ts";
import { type Recorder, startRecorder } from "./workers/recorder.ts";

export interface Deps extends Commands {
  readonly authenticate: Authenticate;
}

type Commands = ReturnType<typeof createCommands>;

export interface CommandDeps {
  readonly db: Db;
  readonly queue: TicketQueue;
  readonly ids: TicketIds;
  readonly rules: () => Rules;
  /** Also modes that have left the rules. */
  readonly modes: () => readonly string[];
  /** Wakes the matchers. */
  readonly onJoined: (mode: string) => void;
}

export function createCommands({ db, queue, ids, rules, modes, onJoined }: CommandDeps) {
  const figures = createQueueFigures({ db, queue });
  const heartbeatMs = (mode: string) => rules().modes.get(mode)?.heartbeatMs;
  const ticketDeps = { db, queue, ids, modes, estimateWait: figures.estimateWait, heartbeatMs };

  function rulesOf(mode: string): ModeRules {
    const { modes } = rules();
    const found = modes.get(mode);
    if (!found) throw unknownMode(`There is no mode ${mode}. The modes are ${[...modes.keys()].join(", ")}.`);
    return found;
  }

  const joinDeps = { db, queue, rulesOf, onJoined };
  return {
    joinQueue: joinQueue(joinDeps),
    joinQueueForUser: joinQueueForUser(joinDeps),
    listTickets: listTickets(ticketDeps),
    getCurrentTicket: getCurrentTicket(ticketDeps),
    getTicket: getTicket(ticketDeps),
    cancelTicket: cancelTicket(ticketDeps),
    heartbeatTicket: heartbeatTicket(ticketDeps),
    getQueueStats: getQueueStats({ figures, rulesOf }),
    listQueues: listQueues(rules),
    readRules: async () => rules(),
    simulateMode: simulateMode({ rules, rulesOf }),
  };
}

export interface QueueDeps {
  readonly db: Db;
  readonly outbox: Outbox;
  readonly ids: TicketIds;
  readonly wakeups: Wakeups;
  /** The wake-up topic for ends in Redis that are not recorded yet. */
  readonly endsTopic: string;
  /** Whether this process records the ends from Redis. */
  readonly records: boolean;
  /** How long an idempotency key is kept. */
  readonly idempotencyMs: number;
  readonly modes: () => readonly string[];
  /** Called when tickets of a void match wait again. */
  readonly onRequeued: (mode: string) => void;
  use<T extends AsyncDisposable>(part: T): T;
  addReadinessCheck(name: string, check: () => Promise<unknown>): void;
  onError(error: unknown): void;
}

/** Opens the queue in Redis if there is a URL, else in PostgreSQL. */
export function openQueue(redisUrl: string | undefined, deps: QueueDeps): TicketQueue {
  const { db, outbox, ids, use } = deps;
  if (redisUrl === undefined) return use(openPostgresQueue({ db, outbox, ids, onRecorded: countEnds }));
  return openQueueInRedis(redisUrl, deps);
}

const ping = createScript("return 1");

function openQueueInRedis(url: string, deps: QueueDeps): TicketQueue {
  const { db, outbox, ids, wakeups, endsTopic: topic, records, modes, onRequeued, use, addReadinessCheck } = deps;
  const onError = (error: unknown) => {
    countDependencyError(error);
    deps.onError(error);
  };
  const link = use(connectRedis({ url, onError: deps.onError }));
  addReadinessCheck("redis", () => link.run(ping, { keys: [], arguments: [] }));
  const shared = { link, db, outbox, onError, onRecorded: countEnds };
  let recorder: Recorder | undefined;
  if (records) {
    const started = use(startRecorder({ ...shared, modes, wakeups, topic, onRequeued }));
    use(observeEndsBacklog(started.backlog, deps.onError));
    recorder = started;
  }
  const onEnded = (mode: string) => {
    recorder?.wake(mode);
    wakeups.signal(topic);
  };
  return use(openRedisQueue({ ...shared, ids, idempotencyMs: deps.idempotencyMs, onEnded }));
}
