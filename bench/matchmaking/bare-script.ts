/**
 * The upper bound for Redis: a script pops two tickets and marks both with their match. It checks, records and publishes
 * nothing.
 */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import type { Contender } from "../measure.ts";

const script = `
local ids = redis.call('ZPOPMIN', KEYS[1], 2 * #ARGV)
for index, match in ipairs(ARGV) do
  local first, second = ids[4 * index - 3], ids[4 * index - 1]
  if not second then return index - 1 end
  redis.call('HSET', KEYS[2], first, match, second, match)
end
return #ARGV`;

const tickets = 200_000;
const fillBatch = 5_000;
const [queueKey, ticketsKey] = ["bench:{bare}:queue", "bench:{bare}:tickets"];

export function bareScripts(url: string) {
  const redis = new Redis(url);

  async function fillQueue(): Promise<void> {
    await redis.unlink(queueKey, ticketsKey);
    for (let from = 0; from < tickets; from += fillBatch) {
      const ids = Array.from({ length: fillBatch }, (_, n) => [from + n, `bare.${randomUUID()}`] as const);
      await redis.zadd(queueKey, ...ids.flat());
      await redis.hset(ticketsKey, Object.fromEntries(ids.map(([, id]) => [id, ""])));
    }
  }

  /** Keeps `callsInFlight` calls in flight until the queue is empty. */
  async function drain(matchesPerCall: number, callsInFlight: number): Promise<number> {
    const sha = (await redis.script("LOAD", script)) as string;
    let [left, made] = [tickets / 2, 0];
    const caller = async () => {
      while (left > 0) {
        left -= matchesPerCall;
        const matches = Array.from({ length: matchesPerCall }, () => randomUUID());
        const matchCount = await redis.evalsha(sha, 2, queueKey, ticketsKey, ...matches);
        made += Number(matchCount); // A separate line: `made += await …` would lose what other callers add.
      }
    };
    await Promise.all(Array.from({ length: callsInFlight }, caller));
    if (made !== tickets / 2) throw new Error(`${made} matches were made of ${tickets} tickets`);
    return made;
  }

  const contender = (name: string, matchesPerCall: number, callsInFlight: number): Contender => ({
    name,
    before: fillQueue,
    run: () => drain(matchesPerCall, callsInFlight),
  });
  return {
    oneMatchPerCall: contender("bare script, 1 match per call, 256 calls in flight", 1, 256),
    fiftyMatchesPerCall: contender("bare script, 50 matches per call, 8 calls in flight", 50, 8),
    async [Symbol.asyncDispose]() {
      redis.disconnect();
    },
  };
}
