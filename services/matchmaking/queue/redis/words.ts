/**
 * What the scripts of the queue share. Each runs whole and alone, by Redis' own clock.
 *
 * All that a mode has lies in eight keys, and every script declares all eight: nothing that a script touches is hidden from
 * a cluster or from access rules.
 *
 *   tickets     ticket id -> its record, as JSON: whose it is, what it wants, and its state
 *   queue       ids of tickets that wait, by the microsecond of their joining
 *   users       user id -> the ticket that waits for the user
 *   deadlines   ids of tickets that wait, by the millisecond at which they are over unless their client is heard of
 *   keys        the SHA-256 of an idempotency key -> what was answered to it, as JSON
 *   keys_until  the same hashes, by the millisecond from which they may be forgotten
 *   ends        a stream of all ends that are not on record in PostgreSQL yet, with all that is to be recorded
 *   forming     which process forms matches at present
 *
 * A ticket waits while its record says QUEUED, its time is not up, and it is the one that `users` names. Whoever ends one
 * writes to `ends` in the same script, so there is no end that nobody would record. What a client said of itself is kept
 * as text in text: to decode and encode it again would turn its empty lists into objects and round its numbers.
 *
 * Whatever can fail comes before the first write, for what a script wrote is not undone. Keys are looked at for their kind
 * first. A server that is full refuses the first write that would need room, and then there was none; after a write it
 * lets the script finish.
 */
import { type Script, scriptOf } from "@todoke/redis";

const keyNames = ["tickets", "queue", "users", "deadlines", "keys", "keys_until", "ends", "forming"];

/** The braces are the hash tag: all keys of a mode lie in one slot of a cluster, and modes are spread over it. */
export const keysOf = (place: string, mode: string): string[] => keyNames.map((name) => `${place}:{${mode}}:${name}`);

const words = `
local tickets, queue, users, deadlines, keys, keys_until, ends, forming = unpack(KEYS)
for place, kind in ipairs({ 'hash', 'zset', 'hash', 'zset', 'hash', 'zset', 'stream', 'string' }) do
  local found = redis.call('TYPE', KEYS[place]).ok
  if found ~= kind and found ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[place] .. ' should be a ' .. kind .. ', and is a ' .. found)
  end
end
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)

local kinds = {
  user = 'string', party = 'number', attributes = 'string', avoid = 'string', wish = 'string', joined = 'string',
  expires = 'number', alive = 'number', state = 'string',
}

-- The ticket and its record, or nothing, what lies there instead, and why that is no ticket.
local function read(id)
  local raw = redis.call('HGET', tickets, id)
  if not raw then return nil, '', 'there is no record of it' end
  local is_json, ticket = pcall(cjson.decode, raw)
  if not is_json or type(ticket) ~= 'table' then return nil, raw, 'its record is not an object in JSON' end
  if ticket.id ~= id then return nil, raw, 'its record is of another ticket' end
  for name, kind in pairs(kinds) do
    if type(ticket[name]) ~= kind then return nil, raw, 'its record has no ' .. name end
  end
  local says, attributes = pcall(cjson.decode, ticket.attributes)
  if not says or type(attributes) ~= 'table' then return nil, raw, 'its attributes are not an object in JSON' end
  if not tonumber(ticket.joined) then return nil, raw, 'it joined at no time' end
  return ticket, raw
end

local function is_queued(ticket) return ticket.state == 'QUEUED' end
local function is_over(ticket) return ticket.expires <= now or ticket.alive <= now end
local function is_of_user(ticket) return redis.call('HGET', users, ticket.user) == ticket.id end
local function waits(ticket) return is_queued(ticket) and not is_over(ticket) and is_of_user(ticket) end

-- A ticket that is over keeps its record until its end is struck off. Without the one, the other was lost.
local function has_end(ticket)
  return is_queued(ticket) or #redis.call('XRANGE', ends, ticket.entry, ticket.entry) > 0
end

local function write(ticket) redis.call('HSET', tickets, ticket.id, cjson.encode(ticket)) end

local function enqueue(ticket)
  write(ticket)
  redis.call('HSET', users, ticket.user, ticket.id)
  redis.call('ZADD', queue, ticket.joined, ticket.id)
  redis.call('ZADD', deadlines, math.min(ticket.expires, ticket.alive), ticket.id)
end

local function leave(ticket)
  redis.call('ZREM', queue, ticket.id)
  redis.call('ZREM', deadlines, ticket.id)
  if is_of_user(ticket) then redis.call('HDEL', users, ticket.user) end
end

local function tell(kind, ...) return redis.call('XADD', ends, '*', 'kind', kind, 'at', now, ...) end

-- The record stays, so that the ticket can be found, until PostgreSQL has the end.
local function finish(ticket, state, entry)
  leave(ticket)
  ticket.state, ticket.entry = state, entry
  write(ticket)
end

local function cancel(ticket, raw) finish(ticket, 'CANCELLED', tell('cancelled', 'id', ticket.id, 'ticket', raw)) end

local function expire(ticket, raw, reason)
  reason = reason or (ticket.expires <= now and 'timeout' or 'heartbeat')
  finish(ticket, 'EXPIRED', tell('expired', 'reason', reason, 'id', ticket.id, 'ticket', raw))
end

local function set_aside(id, raw, why)
  tell('damaged', 'id', id, 'raw', raw, 'why', why)
  redis.call('HDEL', tickets, id)
  redis.call('ZREM', queue, id)
  redis.call('ZREM', deadlines, id)
end

-- What has left the queue is known by its record alone, which need not even be read.
local function forget(id)
  if redis.call('ZSCORE', queue, id) then leave(read(id) or { id = id, user = '' }) end
  redis.call('HDEL', tickets, id)
end

-- Seats are { ticket, raw, team }.
local function match(match_id, region, terms, seats)
  local said = { 'match', match_id, 'region', region, 'terms', terms }
  for _, seat in ipairs(seats) do
    for _, word in ipairs({ 'id', seat.ticket.id, 'team', seat.team, 'ticket', seat.raw }) do said[#said + 1] = word end
  end
  local entry = tell('match', unpack(said))
  for _, seat in ipairs(seats) do
    seat.ticket.match = match_id
    finish(seat.ticket, 'MATCHED', entry)
  end
end
`;

export const script = (text: string): Script => scriptOf(words + text);
