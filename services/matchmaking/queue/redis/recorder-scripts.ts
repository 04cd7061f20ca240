/** How ends are taken from the stream and struck off it, as scripts. words.ts says what they share and what lies where. */
import { script } from "./words.ts";

/**
 * The most ends, and after how long one that was taken and not struck off is taken again: whoever took it is dead.
 * One consumer's name for all processes: which of them takes an end does not matter.
 */
export const takeEnds = script(`
if redis.call('EXISTS', ends) == 0 then return {} end
if #redis.call('XINFO', 'GROUPS', ends) == 0 then redis.call('XGROUP', 'CREATE', ends, 'recorder', '0') end
local taken = redis.call('XAUTOCLAIM', ends, 'recorder', 'recorder', ARGV[2], '0', 'COUNT', ARGV[1])[2]
if #taken < tonumber(ARGV[1]) then
  local new = redis.call('XREADGROUP', 'GROUP', 'recorder', 'recorder', 'COUNT', ARGV[1] - #taken, 'STREAMS', ends, '>')
  for _, entry in ipairs(new and new[1][2] or {}) do taken[#taken + 1] = entry end
end
return taken`);

/**
 * What became of each end that was taken: which of its tickets are over by PostgreSQL's word, and which are free again,
 * because a match did not come about. Those wait on from where they were, unless their user has another ticket by now.
 * May be run again, and by two processes at once: a ticket that has gone on living since is left alone.
 */
export const strikeOff = script(`
local given_back, entries = 0, {}
local struck_off = cjson.decode(ARGV[1])
for place, each in ipairs(struck_off) do entries[place] = each.entry end
redis.call('XACK', ends, 'recorder', unpack(entries))
redis.call('XDEL', ends, unpack(entries))
for _, each in ipairs(struck_off) do
  for _, id in ipairs(each.over) do forget(id) end
  for _, id in ipairs(each.free) do
    local ticket, raw = read(id)
    if ticket and ticket.state == 'MATCHED' and ticket.match == each.match then
      ticket.state, ticket.match, ticket.entry = 'QUEUED', nil, nil
      local other = read(redis.call('HGET', users, ticket.user) or '')
      if other and is_queued(other) then
        expire(ticket, raw, 'replaced')
      else
        enqueue(ticket)
        given_back = given_back + 1
      end
    end
  end
end
return given_back`);

/** How many ends wait to be recorded. */
export const countEnds = script(`return redis.call('XLEN', ends)`);
