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
 * Argument: for each claimed end, which of its tickets have ended according to PostgreSQL, with their users, and which wait again
 * because their match is void. Those keep their join time, unless their user has another ticket by now. Returns how many wait again.
 * The script is idempotent, also with two processes at once: a ticket that has changed since is left alone.
 *
 * Ended tickets are forgotten together and without reading their records, which would be half of the script's time. Of an
 * unreadable end no users are known: its tickets are read.
 */
export const ackEnds = script(`
-- Lua passes some thousand arguments at most.
local forgotten_max = 1000
local function forget_owned(ids, owners)
  if #ids == 0 then return end
  redis.call('ZREM', queue, unpack(ids))
  redis.call('ZREM', deadlines, unpack(ids))
  local freed = {}
  for index, last in ipairs(redis.call('HMGET', users, unpack(owners))) do
    if last == ids[index] then freed[#freed + 1] = owners[index] end
  end
  if #freed > 0 then redis.call('HDEL', users, unpack(freed)) end
  redis.call('HDEL', tickets, unpack(ids))
end

local requeued, entries = 0, {}
local acked = cjson.decode(ARGV[1])
for index, each in ipairs(acked) do entries[index] = each.entry end
redis.call('XACK', ends, 'recorder', unpack(entries))
redis.call('XDEL', ends, unpack(entries))
local ids, owners = {}, {}
for _, each in ipairs(acked) do
  for index, id in ipairs(each.ended) do
    if each.users[index] == '' then
      forget(id)
    else
      ids[#ids + 1], owners[#owners + 1] = id, each.users[index]
    end
    if #ids == forgotten_max then
      forget_owned(ids, owners)
      ids, owners = {}, {}
    end
  end
end
forget_owned(ids, owners)
for _, each in ipairs(acked) do
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
