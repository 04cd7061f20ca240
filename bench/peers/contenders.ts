/** All contenders, in the order of the page. */
import { bullmq } from "./bullmq.ts";
import { graphileWorker } from "./graphile-worker.ts";
import type { Contender } from "./peer.ts";
import { pgBoss, pgBossPolling } from "./pg-boss.ts";
import { pgTransactionalOutbox } from "./pg-transactional-outbox.ts";
import { todokeJobs, todokeOutbox } from "./todoke.ts";

const contenders = {
  "Todoke, jobs table": todokeJobs,
  "Todoke, outbox": todokeOutbox,
  "pg-boss": pgBoss,
  "pg-boss, notify off": pgBossPolling,
  "graphile-worker": graphileWorker,
  "pg-transactional-outbox": pgTransactionalOutbox,
  BullMQ: bullmq,
} as const satisfies Readonly<Record<string, Contender>>;

export type ContenderName = keyof typeof contenders;

export const contenderNames = Object.keys(contenders) as ContenderName[];

export const getContender = (name: ContenderName): Contender => contenders[name];

export const isOurs = (name: string) => name.startsWith("Todoke");
