/** The scripts of the queue. prelude.ts has what they share and describes the keys. */
import { script } from "./prelude.ts";

/**
 * Arguments: hash of the key, hash of the request, ID of a new ticket, hash of party size and attributes, the ticket, its
 * lifetime, the heartbeat interval or "", how long the key is kept, and the open ticket that PostgreSQL has no end of, or "".
 *
 * An open ticket is returned only after PostgreSQL was asked: it may have ended there, and Redis may have lost that.
 */
export const join = script(`
local key, request_hash, id, wish, live_ms, heartbeat_ms, keep_ms, confirmed =
  ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8], ARGV[9]

local is_json, stored = pcall(cjson.decode, redis.call('HGET', keys, key) or 'null')
if is_json and type(stored) == 'table' and (tonumber(stored.keep) or 0) > now then
  if stored.hash ~= request_hash then return { 'conflict' } end
  return { 'replayed', stored.kind, stored.ticket, stored.expires }
end

local ticket = cjson.decode(ARGV[5])
local before, raw, why
local open = redis.call('HGET', users, ticket.user)
if open then before, raw, why = read(open) end
local kind = 'new'
if before and is_waiting(before) then
  if before.wish ~= wish then return { 'different', open } end
  if open ~= confirmed then return { 'unconfirmed', open } end
  kind, ticket = 'open', before
end

if kind == 'new' then
  if before and is_queued(before) then expire(before, raw) end
  if open and not before and raw ~= '' then quarantine(open, raw, why) end
  -- If the clock is set back by less than a second, the order of tickets does not change.
  local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2]
  local joined = math.max(now_us, math.min(tonumber(last or 0) + 1, now_us + 1000000))
  ticket.id, ticket.wish, ticket.state = id, wish, 'QUEUED'
  ticket.joined = string.format('%.0f', joined)
  ticket.expires = now + live_ms
  ticket.alive = alive_until(ticket, heartbeat_ms)
  enqueue(ticket)
end
redis.call('HSET', keys, key, cjson.encode({
  hash = request_hash, kind = kind, ticket = ticket.id, expires = ticket.expires, keep = now + keep_ms,
}))
redis.call('ZADD', keys_until, now + keep_ms, key)
return { kind, kind, ticket.id, ticket.expires }`);

/** Argument: ticket ID. Returns the record, or "", and the time. */
export const find = script(`
local ticket, raw = read(ARGV[1])
return { ticket and is_known(ticket) and raw or '', now }`);

/** Argument: user ID. Returns the same of the user's last ticket. */
export const findOfUser = script(`
local ticket, raw = read(redis.call('HGET', users, ARGV[1]) or '')
return { ticket and is_known(ticket) and raw or '', now }`);

/** Argument: ticket ID. Returns the state after the call, and the stream entry of the end. */
export const cancelTicket = script(`
local ticket, raw, why = read(ARGV[1])
if not ticket then
  if raw ~= '' then quarantine(ARGV[1], raw, why) end
  return nil
end
if is_queued(ticket) then
  cancel_or_expire(ticket, raw)
elseif not is_known(ticket) then
  forget(ticket.id)
  return nil
end
return { ticket.state, redis.call('XRANGE', ends, ticket.entry, ticket.entry) }`);

/** Arguments: user IDs. Returns the stream entries of the ends of their waiting tickets. */
export const cancelUserTickets = script(`
local ended = {}
for _, user in ipairs(ARGV) do
  local ticket, raw = read(redis.call('HGET', users, user) or '')
  if ticket and is_queued(ticket) then
    cancel_or_expire(ticket, raw)
    ended[#ended + 1] = redis.call('XRANGE', ends, ticket.entry, ticket.entry)[1]
  end
end
return ended`);

/** Arguments: ticket ID, and the heartbeat interval or "". */
export const heartbeat = script(`
local ticket = read(ARGV[1])
if not ticket or not is_waiting(ticket) then return nil end
ticket.alive = alive_until(ticket, tonumber(ARGV[2]))
enqueue(ticket)
return cjson.encode(ticket)`);

/**
 * Arguments: players of a match, the terms, the limit of unrecorded ends, and an ID for each match that may be made. Returns
 * how many were made, and how many damaged or ended tickets were removed: behind those there may be more matches.
 *
 * Parties are skipped, up to a number that is read within some milliseconds: earlier rules let them in, and they expire.
 */
export const matchFifo = script(`
local players, terms, backlog_max, matches_max = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), #ARGV - 3
local parties_max = 1000
if redis.call('XLEN', ends) >= backlog_max then return { 0, 0 } end
local wanted, found, parties = players * matches_max, {}, 0
repeat
  local from = #found + parties
  local ids = redis.call('ZRANGE', queue, from, from + wanted - 1)
  for _, id in ipairs(ids) do
    if #found == wanted then break end
    local ticket, raw, why = read(id)
    if ticket and ticket.party > 1 and is_waiting(ticket) then
      parties = parties + 1
    else
      found[#found + 1] = { id = id, ticket = ticket, raw = raw, why = why }
    end
  end
until #ids < wanted or #found == wanted or parties >= parties_max

local made, removed, seats = 0, 0, {}
for _, each in ipairs(found) do
  local id, ticket, raw = each.id, each.ticket, each.raw
  if ticket and is_waiting(ticket) then
    seats[#seats + 1] = { ticket = ticket, raw = raw, team = #seats + 1 }
  else
    removed = removed + 1
    if not ticket then
      quarantine(id, raw, each.why)
    elseif not is_queued(ticket) then
      redis.call('ZREM', queue, id)
    else
      expire(ticket, raw, not is_expired(ticket) and 'replaced' or nil)
    end
  end
  if #seats == players then
    made = made + 1
    match(ARGV[3 + made], '', terms, seats)
    seats = {}
  end
end
return { made, removed }`);

/** Arguments: the limit of unrecorded ends, the terms, and the proposals. Returns how many matches were made. */
export const commitProposals = script(`
local backlog_max, terms, proposals = tonumber(ARGV[1]), ARGV[2], cjson.decode(ARGV[3])
if redis.call('XLEN', ends) >= backlog_max then return 0 end
local made = 0
for _, proposal in ipairs(proposals) do
  local seats, seen_users = {}, {}
  for _, seat in ipairs(proposal.seats) do
    local ticket, raw = read(seat.id)
    if not ticket or not is_waiting(ticket) or seen_users[ticket.user] then break end
    seen_users[ticket.user] = true
    seats[#seats + 1] = { ticket = ticket, raw = raw, team = seat.team }
  end
  if #seats > 0 and #seats == #proposal.seats then
    match(proposal.match, proposal.region, terms, seats)
    made = made + 1
  end
end
return made`);

/** Arguments: the most tickets, and a random number below 1. Returns the time, then the ID and the record of each. */
export const snapshot = script(`
local most, random, all = tonumber(ARGV[1]), tonumber(ARGV[2]), redis.call('ZCARD', queue)
local quarter = math.floor(most / 4)
local oldest = most - 2 * quarter
local ranges = { { 0, all - 1 } }
if all > most then
  local middle = oldest + math.floor(random * (all - most + 1))
  ranges = { { 0, oldest - 1 }, { middle, middle + quarter - 1 }, { all - quarter, all - 1 } }
end
local found = { now }
for _, range in ipairs(ranges) do
  for first = range[1], range[2], 1000 do
    local last = math.min(first + 999, range[2])
    local ids = redis.call('ZRANGE', queue, first, last)
    local records = redis.call('HMGET', tickets, unpack(ids))
    for index, id in ipairs(ids) do
      found[#found + 1] = id
      found[#found + 1] = records[index] or ''
    end
  end
end
return found`);

/** Arguments: IDs, each with the data as it was read and why it is not a ticket. Data that has changed since is left alone. */
export const quarantine = script(`
for index = 1, #ARGV, 3 do
  local id, raw, why = ARGV[index], ARGV[index + 1], ARGV[index + 2]
  if redis.call('ZSCORE', queue, id) and (redis.call('HGET', tickets, id) or '') == raw then quarantine(id, raw, why) end
end`);

/** Arguments: IDs of tickets that PostgreSQL has an end of. */
export const forgetTickets = script(`
for _, id in ipairs(ARGV) do forget(id) end`);

/** Arguments: the process, and the length of the lease. */
export const acquireFormingLease = script(`
local holder = redis.call('GET', forming)
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', forming, ARGV[1], 'PX', ARGV[2])
return 1`);

/** Returns how many tickets wait, and the age of the oldest one, or -1. */
export const status = script(`
local oldest = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')[2]
local waiting = redis.call('ZCOUNT', deadlines, '(' .. string.format('%.0f', now), '+inf')
return { waiting, oldest and waiting > 0 and math.max(0, now - math.floor(oldest / 1000)) or -1 }`);

/**
 * Arguments: the most tickets to check, and the most keys to delete. Returns how many were checked, expired and damaged, how
 * many wait, the age of the oldest one, and the time until the next one expires, or -1.
 */
export const sweep = script(`
local due = redis.call('ZRANGEBYSCORE', deadlines, '-inf', now, 'LIMIT', 0, ARGV[1])
local expired, damaged = 0, 0
for _, id in ipairs(due) do
  local ticket, raw, why = read(id)
  if not ticket then
    quarantine(id, raw, why)
    damaged = damaged + 1
  elseif not is_queued(ticket) then
    redis.call('ZREM', deadlines, id)
  elseif is_expired(ticket) then
    expire(ticket, raw)
    expired = expired + 1
  else
    redis.call('ZADD', deadlines, math.min(ticket.expires, ticket.alive), id)
  end
end
local stale = redis.call('ZRANGEBYSCORE', keys_until, '-inf', now, 'LIMIT', 0, ARGV[2])
if #stale > 0 then
  redis.call('HDEL', keys, unpack(stale))
  redis.call('ZREM', keys_until, unpack(stale))
end
local oldest = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')[2]
local next_end = redis.call('ZRANGE', deadlines, 0, 0, 'WITHSCORES')[2]
return {
  #due, expired, damaged, redis.call('ZCARD', queue),
  oldest and math.max(0, now - math.floor(oldest / 1000)) or -1, next_end and math.max(0, next_end - now) or -1,
}`);
