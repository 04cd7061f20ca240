/** The scripts of the recorder. prelude.ts has what they share and describes the keys. */
import { script } from "./prelude.ts";

/**
 * Arguments: the most ends, and after how long a claimed end that was not acked is claimed again, because its process has
 * crashed. All processes use one consumer name: which of them claims an end does not matter.
 */
export const claimEnds = script(`
if redis.call('EXISTS', ends) == 0 then return {} end
if #redis.call('XINFO', 'GROUPS', ends) == 0 then redis.call('XGROUP', 'CREATE', ends, 'recorder', '0') end
local claimed = redis.call('XAUTOCLAIM', ends, 'recorder', 'recorder', ARGV[2], '0', 'COUNT', ARGV[1])[2]
if #claimed < tonumber(ARGV[1]) then
  local new = redis.call('XREADGROUP', 'GROUP', 'recorder', 'recorder', 'COUNT', ARGV[1] - #claimed, 'STREAMS', ends, '>')
  for _, entry in ipairs(new and new[1][2] or {}) do claimed[#claimed + 1] = entry end
end
return claimed`);

/**
 * Argument: for each claimed end, which of its tickets have ended according to PostgreSQL, and which wait again because their
 * match is void. Those keep their join time, unless their user has another ticket by now. Returns how many wait again.
 * The script is idempotent, also with two processes at once: a ticket that has changed since is left alone.
 */
export const ackEnds = script(`
local requeued, entries = 0, {}
local acked = cjson.decode(ARGV[1])
for index, each in ipairs(acked) do entries[index] = each.entry end
redis.call('XACK', ends, 'recorder', unpack(entries))
redis.call('XDEL', ends, unpack(entries))
for _, each in ipairs(acked) do
  for _, id in ipairs(each.ended) do forget(id) end
  for _, id in ipairs(each.waiting) do
    local ticket, raw = read(id)
    if ticket and ticket.state == 'MATCHED' and ticket.match == each.match then
      ticket.state, ticket.match, ticket.entry = 'QUEUED', nil, nil
      local other = read(redis.call('HGET', users, ticket.user) or '')
      if other and is_queued(other) then
        expire(ticket, raw, 'replaced')
      else
        enqueue(ticket)
        requeued = requeued + 1
      end
    end
  end
end
return requeued`);

/** Returns how many ends are not recorded yet. */
export const countEnds = script(`return redis.call('XLEN', ends)`);
