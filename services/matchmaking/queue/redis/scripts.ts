/** What is done to a queue, as scripts. words.ts says what they share and what lies where. */
import { script } from "./words.ts";

/**
 * The key's hash, the request's hash, an id for a new ticket, the wish's hash, the ticket, how long it lives, how often it
 * has to be heard of or "", how long the key is kept, and the open ticket that PostgreSQL has no end of, or "".
 *
 * An open ticket is not told of before PostgreSQL was asked: it may have ended, and Redis may have forgotten that.
 */
export const join = script(`
local key, request_hash, id, wish, live_ms, heartbeat_ms, keep_ms, sure =
  ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8], ARGV[9]

local is_json, known = pcall(cjson.decode, redis.call('HGET', keys, key) or 'null')
if is_json and type(known) == 'table' and (tonumber(known.keep) or 0) > now then
  if known.hash ~= request_hash then return { 'conflict' } end
  return { 'replayed', known.kind, known.ticket, known.expires }
end

local ticket = cjson.decode(ARGV[5])
local before, raw, why
local open = redis.call('HGET', users, ticket.user)
if open then before, raw, why = read(open) end
local kind = 'new'
if before and waits(before) then
  if before.wish ~= wish then return { 'other', open } end
  if open ~= sure then return { 'open', open } end
  kind, ticket = 'kept', before
end

if kind == 'new' then
  if before and is_queued(before) then expire(before, raw) end
  if open and not before and raw ~= '' then set_aside(open, raw, why) end
  -- A clock that is set back by less than a second changes nobody's place.
  local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2]
  local joined = math.max(now_us, math.min(tonumber(last or 0) + 1, now_us + 1000000))
  ticket.id, ticket.wish, ticket.state = id, wish, 'QUEUED'
  ticket.joined = string.format('%.0f', joined)
  ticket.expires = now + live_ms
  ticket.alive = heartbeat_ms and math.min(ticket.expires, now + heartbeat_ms) or ticket.expires
  enqueue(ticket)
end
redis.call('HSET', keys, key, cjson.encode({
  hash = request_hash, kind = kind == 'new' and 'new' or 'open', ticket = ticket.id, expires = ticket.expires,
  keep = now + keep_ms,
}))
redis.call('ZADD', keys_until, now + keep_ms, key)
return { kind, ticket.id, ticket.expires }`);

/** Ticket id. The record, and the time. */
export const find = script(`
local ticket, raw = read(ARGV[1])
return { ticket and has_end(ticket) and raw or '', now }`);

/** Ticket id. The state after this, and the end in the stream. */
export const cancelTicket = script(`
local ticket, raw, why = read(ARGV[1])
if not ticket then
  if raw ~= '' then set_aside(ARGV[1], raw, why) end
  return nil
end
if is_queued(ticket) then
  if is_over(ticket) then expire(ticket, raw) else cancel(ticket, raw) end
elseif not has_end(ticket) then
  forget(ticket.id)
  return nil
end
return { ticket.state, redis.call('XRANGE', ends, ticket.entry, ticket.entry) }`);

/** Ids of users. The ends in the stream of what waited for them. */
export const cancelTicketsOf = script(`
local ended = {}
for _, user in ipairs(ARGV) do
  local ticket, raw = read(redis.call('HGET', users, user) or '')
  if ticket and is_queued(ticket) then
    if is_over(ticket) then expire(ticket, raw) else cancel(ticket, raw) end
    ended[#ended + 1] = redis.call('XRANGE', ends, ticket.entry, ticket.entry)[1]
  end
end
return ended`);

/** Ticket id, and how often it has to be heard of or "". */
export const beat = script(`
local ticket = read(ARGV[1])
if not ticket or not waits(ticket) then return nil end
local heartbeat_ms = tonumber(ARGV[2])
ticket.alive = heartbeat_ms and math.min(ticket.expires, now + heartbeat_ms) or ticket.expires
enqueue(ticket)
return cjson.encode(ticket)`);

/**
 * Players of a match, the terms, the most ends that may wait to be recorded, and an id for each match that may be made.
 * How many were made, and how many tickets were met that are none or are over: behind those there may be more.
 *
 * Parties are passed over, up to a number that is read within some milliseconds: rules of another day let them in, and they
 * end by their time.
 */
export const matchInOrder = script(`
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
    if ticket and ticket.party > 1 and waits(ticket) then
      parties = parties + 1
    else
      found[#found + 1] = { id = id, ticket = ticket, raw = raw, why = why }
    end
  end
until #ids < wanted or #found == wanted or parties >= parties_max

local made, over, seats = 0, 0, {}
for _, each in ipairs(found) do
  local id, ticket, raw = each.id, each.ticket, each.raw
  if ticket and waits(ticket) then
    seats[#seats + 1] = { ticket = ticket, raw = raw, team = #seats + 1 }
  else
    over = over + 1
    if not ticket then
      set_aside(id, raw, each.why)
    elseif not is_queued(ticket) then
      redis.call('ZREM', queue, id)
    else
      expire(ticket, raw, not is_over(ticket) and 'replaced' or nil)
    end
  end
  if #seats == players then
    made = made + 1
    match(ARGV[3 + made], '', terms, seats)
    seats = {}
  end
end
return { made, over }`);

/** The most ends that may wait to be recorded, the terms, and the proposals. How many were made. */
export const settle = script(`
local backlog_max, terms, proposals = tonumber(ARGV[1]), ARGV[2], cjson.decode(ARGV[3])
if redis.call('XLEN', ends) >= backlog_max then return 0 end
local made = 0
for _, proposal in ipairs(proposals) do
  local seats, met = {}, {}
  for _, seat in ipairs(proposal.seats) do
    local ticket, raw = read(seat.id)
    if not ticket or not waits(ticket) or met[ticket.user] then break end
    met[ticket.user] = true
    seats[#seats + 1] = { ticket = ticket, raw = raw, team = seat.team }
  end
  if #seats > 0 and #seats == #proposal.seats then
    match(proposal.match, proposal.region, terms, seats)
    made = made + 1
  end
end
return made`);

/** The most tickets, and a random number below 1. The time, then the id and the record of each. */
export const snapshot = script(`
local most, random, all = tonumber(ARGV[1]), tonumber(ARGV[2]), redis.call('ZCARD', queue)
local few = math.floor(most / 4)
local oldest = most - 2 * few
local parts = { { 0, all - 1 } }
if all > most then
  local between = oldest + math.floor(random * (all - most + 1))
  parts = { { 0, oldest - 1 }, { between, between + few - 1 }, { all - few, all - 1 } }
end
local found = { now }
for _, part in ipairs(parts) do
  for first = part[1], part[2], 1000 do
    local last = math.min(first + 999, part[2])
    local ids = redis.call('ZRANGE', queue, first, last)
    local records = redis.call('HMGET', tickets, unpack(ids))
    for place, id in ipairs(ids) do
      found[#found + 1] = id
      found[#found + 1] = records[place] or ''
    end
  end
end
return found`);

/** Ids, each with what lies there as it was seen, and why it is no ticket. What has changed since is left alone. */
export const setAside = script(`
for place = 1, #ARGV, 3 do
  local id, raw, why = ARGV[place], ARGV[place + 1], ARGV[place + 2]
  if redis.call('ZSCORE', queue, id) and (redis.call('HGET', tickets, id) or '') == raw then set_aside(id, raw, why) end
end`);

/** Ids of tickets that PostgreSQL has ended. */
export const forgetTickets = script(`
for _, id in ipairs(ARGV) do forget(id) end`);

/** Who asks, and for how long. */
export const hold = script(`
local holder = redis.call('GET', forming)
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', forming, ARGV[1], 'PX', ARGV[2])
return 1`);

/** How many wait, and how long the oldest has waited, or -1. */
export const standing = script(`
local oldest = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')[2]
local waiting = redis.call('ZCOUNT', deadlines, '(' .. string.format('%.0f', now), '+inf')
return { waiting, oldest and waiting > 0 and math.max(0, now - math.floor(oldest / 1000)) or -1 }`);

/**
 * The most tickets to look at, and the most keys to forget. How many were looked at, expired and damaged; how many wait;
 * how long the oldest has waited, and in how long the next is over, or -1.
 */
export const sweep = script(`
local due = redis.call('ZRANGEBYSCORE', deadlines, '-inf', now, 'LIMIT', 0, ARGV[1])
local expired, damaged = 0, 0
for _, id in ipairs(due) do
  local ticket, raw, why = read(id)
  if not ticket then
    set_aside(id, raw, why)
    damaged = damaged + 1
  elseif not is_queued(ticket) then
    redis.call('ZREM', deadlines, id)
  elseif is_over(ticket) then
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
