/**
 * Limits in Redis: one script for a request, with all of its keys declared. The keys of a place share one hash tag, and
 * with it one slot of a cluster. A key goes by itself when its time has passed, and never lacks its end: both are one
 * command.
 */
import { type RedisLink, scriptOf } from "@todoke/redis";
import { paceOf, takenOf } from "./gcra.ts";
import type { Item, Limiter } from "./index.ts";

// All is read and decided before anything is written: a script that fails in the middle is not undone. The arithmetic is
// that of gcra.ts. A key that is further ahead than any can be was counted by a clock that has been set back since, or by
// another policy, and begins anew.
const script = scriptOf(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local ahead, fits = {}, true
local function asked(i) return tonumber(ARGV[3 * i - 2]), tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i]) end
for i, key in ipairs(KEYS) do
  local units, each, slack = asked(i)
  ahead[i] = math.max(0, tonumber(redis.call('GET', key) or now) - now)
  if ahead[i] > slack + each then ahead[i] = 0 end
  fits = fits and ahead[i] + (units - 1) * each <= slack
end
if fits then
  for i, key in ipairs(KEYS) do
    local units, each = asked(i)
    local used = ahead[i] + units * each
    redis.call('SET', key, string.format('%.0f', now + used), 'PX', string.format('%.0f', math.ceil(used / 1000)))
  end
end
return ahead`);

/** Gateways that share a Redis and no limits have a place each. */
export function redisLimiter(redis: Pick<RedisLink, "run">, { place = "todoke:limits" } = {}): Limiter {
  return {
    async take(items) {
      const keys = items.map(({ key }) => `{${place}}:${key}`);
      const ahead = await redis.run(script, { keys, arguments: items.flatMap(argumentsOf) });
      return takenOf(items, ahead as readonly number[]);
    },
  };
}

function argumentsOf({ units, policy }: Item): string[] {
  const { eachUs, slackUs } = paceOf(policy);
  return [units, eachUs, slackUs].map(String);
}
