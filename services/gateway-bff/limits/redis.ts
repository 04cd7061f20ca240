/**
 * Limits in Redis: one script per request, with all its keys declared. The keys of a namespace share one hash tag, so they
 * are in one slot of a cluster. A key and its expiry are set by one command, so no key stays.
 */
import { decide, type LimitItem, toPace } from "@todoke/http";
import { createScript, type RedisConnection } from "@todoke/redis";
import type { Limiter } from "./index.ts";

// The arithmetic of packages/http/limits/gcra.ts. The script reads and decides before it writes, because Redis does not roll back. A key that is
// too far ahead was counted by a clock that was set back since, or by another policy; it starts again.
const script = createScript(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local ahead, fits = {}, true
local function arguments(i) return tonumber(ARGV[3 * i - 2]), tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i]) end
for i, key in ipairs(KEYS) do
  local units, each, slack = arguments(i)
  ahead[i] = math.max(0, tonumber(redis.call('GET', key) or now) - now)
  if ahead[i] > slack + each then ahead[i] = 0 end
  fits = fits and ahead[i] + (units - 1) * each <= slack
end
if fits then
  for i, key in ipairs(KEYS) do
    local units, each = arguments(i)
    local used = ahead[i] + units * each
    redis.call('SET', key, string.format('%.0f', now + used), 'PX', string.format('%.0f', math.ceil(used / 1000)))
  end
end
return ahead`);

/** Gateways that share a Redis but not their limits have a namespace each. */
export function redisLimiter(redis: Pick<RedisConnection, "run">, { namespace = "todoke:limits" } = {}): Limiter {
  return {
    async take(items) {
      const keys = items.map(({ key }) => `{${namespace}}:${key}`);
      const ahead = await redis.run(script, { keys, arguments: items.flatMap(toArguments) });
      return decide(items, ahead as readonly number[]);
    },
  };
}

function toArguments({ units, policy }: LimitItem): string[] {
  const { eachUs, slackUs } = toPace(policy);
  return [units, eachUs, slackUs].map(String);
}
