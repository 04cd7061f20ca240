/** Every command and read of the service, put together for one process. */
import type { Db } from "@todoke/kernel/db";
import { unknownMode } from "../problems.ts";
import type { TicketQueue } from "../queue/index.ts";
import type { ModeRules, Rules } from "../rules/index.ts";
import { toldJoin } from "../telemetry.ts";
import type { TicketIds } from "../ticket-id.ts";
import { cancelTicket } from "./cancel-ticket.ts";
import { heartbeatTicket } from "./heartbeat-ticket.ts";
import { joinQueue } from "./join-queue.ts";
import { listQueues } from "./list-queues.ts";
import { openQueueStats } from "./show-queue-stats.ts";
import { showTicket } from "./show-ticket.ts";

export interface CommandDeps {
  readonly db: Db;
  readonly queue: TicketQueue;
  readonly ids: TicketIds;
  readonly rules: () => Rules;
  /** Hears of every new ticket: the matcher's wake-up. */
  readonly onJoined: (mode: string) => void;
}

export function openCommands({ db, queue, ids, rules, onJoined }: CommandDeps) {
  const { showQueueStats, estimate } = openQueueStats({ db, queue });
  const heartbeatMs = (mode: string) => rules().modes.get(mode)?.heartbeatMs;
  const deps = { db, queue, ids, estimate, heartbeatMs };

  function rulesOf(mode: string): ModeRules {
    const { modes } = rules();
    const found = modes.get(mode);
    if (!found) throw unknownMode(`there is no mode ${mode}; there are ${[...modes.keys()].join(", ")}`);
    return found;
  }

  return {
    joinQueue: toldJoin(joinQueue({ db, queue, rulesOf, onJoined })),
    showTicket: showTicket(deps),
    cancelTicket: cancelTicket(deps),
    heartbeatTicket: heartbeatTicket(deps),
    showQueueStats: async (mode: string) => showQueueStats(rulesOf(mode).mode),
    listQueues: listQueues(rules),
  };
}

export type Commands = ReturnType<typeof openCommands>;
