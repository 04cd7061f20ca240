/**
 * The ceilings: the top two of a queue are taken, and both tickets are marked with their match. Nothing is checked,
 * nothing is told to anybody, nothing is recorded.
 */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import type { Contender } from "../measure.ts";

const script = `
local ids = redis.call('ZPOPMIN', KEYS[1], 2 * #ARGV)
for place, match in ipairs(ARGV) do
  local first, second = ids[4 * place - 3], ids[4 * place - 1]
  if not second then return place - 1 end
  redis.call('HSET', KEYS[2], first, match, second, match)
end
return #ARGV`;

const tickets = 200_000;
const filledAtOnce = 5_000;
const [queueKey, ticketsKey] = ["bench:{bare}:queue", "bench:{bare}:tickets"];

export function ceilings(url: string) {
  const redis = new Redis(url);

  async function refill(): Promise<void> {
    await redis.unlink(queueKey, ticketsKey);
    for (let from = 0; from < tickets; from += filledAtOnce) {
      const ids = Array.from({ length: filledAtOnce }, (_, n) => [from + n, `bare.${randomUUID()}`] as const);
      await redis.zadd(queueKey, ...ids.flat());
      await redis.hset(ticketsKey, Object.fromEntries(ids.map(([, id]) => [id, ""])));
    }
  }

  /** So many calls are under way all the time, until nobody is left. */
  async function drain(matchesPerCall: number, underWay: number): Promise<number> {
    const sha = (await redis.script("LOAD", script)) as string;
    let [left, made] = [tickets / 2, 0];
    const calling = async () => {
      while (left > 0) {
        left -= matchesPerCall;
        const matches = Array.from({ length: matchesPerCall }, () => randomUUID());
        const said = await redis.evalsha(sha, 2, queueKey, ticketsKey, ...matches);
        made += Number(said); // Not in one line: others add to it while this one waits.
      }
    };
    await Promise.all(Array.from({ length: underWay }, calling));
    if (made !== tickets / 2) throw new Error(`${made} matches were made of ${tickets} tickets`);
    return made;
  }

  const contender = (name: string, matchesPerCall: number, underWay: number): Contender => ({
    name,
    before: refill,
    run: () => drain(matchesPerCall, underWay),
  });
  return {
    matchTwo: contender("a bare script that matches two, 256 calls under way", 1, 256),
    matchFifty: contender("the same with 50 matches a call, 8 calls under way", 50, 8),
    async [Symbol.asyncDispose]() {
      redis.disconnect();
    },
  };
}
