/**
 * Limits in PostgreSQL. Requests that arrive while a statement runs are counted together by the next one, each key locked
 * once: several requests of one caller in a batch are granted as far as they fit, in their order.
 */
import { decide, type LimitDecision, type LimitItem } from "@todoke/http";
import { createBatcher } from "@todoke/kernel/batcher";
import type { Db } from "@todoke/kernel/db";
import { takeUnits } from "../store/limits.ts";
import type { Limiter } from "./index.ts";

// The keys stay locked while a batch runs: a few milliseconds.
const batchMax = 200;

export function postgresLimiter(db: Db): Limiter {
  const run = async (requests: readonly (readonly LimitItem[])[]) => {
    const ahead = await takeUnits(db, requests);
    return requests.map((items, index) => decide(items, ahead[index] ?? []));
  };
  return { take: createBatcher<readonly LimitItem[], LimitDecision>({ run, batchMax }) };
}
