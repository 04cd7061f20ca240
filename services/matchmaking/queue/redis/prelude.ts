/**
 * The Lua prelude of all scripts of the queue. A script runs atomically, by Redis' own clock.
 *
 * The data of a mode is in eight keys, and every script declares all eight, as clusters and access rules require.
 *
 *   tickets     ticket ID -> its record in JSON: owner, request and state
 *   queue       IDs of waiting tickets, by join time in microseconds
 *   users       user ID -> the user's last ticket, until its end is recorded
 *   deadlines   IDs of waiting tickets, by the millisecond at which they expire without a heartbeat
 *   keys        SHA-256 of an idempotency key -> its stored result in JSON
 *   keys_until  the same hashes, by the millisecond at which they may be deleted
 *   ends        stream of the ends that are not recorded in PostgreSQL yet, with all data to be recorded
 *   forming     the process that has the lease on forming matches
 *
 * A ticket waits while its record says QUEUED, it is not expired, and `users` names it. A script that ends a ticket appends
 * to `ends`, so every end is recorded. Attributes are a JSON string inside the JSON record: decoding and encoding them in Lua
 * would turn empty lists into objects and round numbers.
 *
 * A script is not rolled back, so everything that can fail comes before its first write: the types of the keys are checked
 * first, and a server that is out of memory rejects the first write that needs memory but lets a script finish after it.
 */
import { createScript, type Script } from "@todoke/redis";

const keyNames = ["tickets", "queue", "users", "deadlines", "keys", "keys_until", "ends", "forming"];

/** The braces are a hash tag: all keys of a mode are in one slot of a cluster, and modes are spread over the slots. */
export const keysFor = (keyPrefix: string, mode: string): string[] =>
  keyNames.map((name) => `${keyPrefix}:{${mode}}:${name}`);

const prelude = `
local tickets, queue, users, deadlines, keys, keys_until, ends, forming = unpack(KEYS)
for index, kind in ipairs({ 'hash', 'zset', 'hash', 'zset', 'hash', 'zset', 'stream', 'string' }) do
  local found = redis.call('TYPE', KEYS[index]).ok
  if found ~= kind and found ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[index] .. ' should be a ' .. kind .. ' and is a ' .. found)
  end
end
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)

local kinds = {
  user = 'string', party = 'number', attributes = 'string', avoid = 'string', wish = 'string', joined = 'string',
  expires = 'number', alive = 'number', state = 'string',
}

-- Returns the ticket and its record; or nil, the data found and why it is not a ticket.
local function read(id)
  local raw = redis.call('HGET', tickets, id)
  if not raw then return nil, '', 'it has no record' end
  local is_json, ticket = pcall(cjson.decode, raw)
  if not is_json or type(ticket) ~= 'table' then return nil, raw, 'its record is not a JSON object' end
  if ticket.id ~= id then return nil, raw, 'its record is of another ticket' end
  for name, kind in pairs(kinds) do
    if type(ticket[name]) ~= kind then return nil, raw, 'its record has no ' .. name end
  end
  if ticket.attributes ~= '{}' then
    local decoded, attributes = pcall(cjson.decode, ticket.attributes)
    if not decoded or type(attributes) ~= 'table' then return nil, raw, 'its attributes are not a JSON object' end
  end
  if not tonumber(ticket.joined) then return nil, raw, 'its join time is not a number' end
  return ticket, raw
end

local function is_queued(ticket) return ticket.state == 'QUEUED' end
local function is_expired(ticket) return ticket.expires <= now or ticket.alive <= now end
local function is_users_ticket(ticket) return redis.call('HGET', users, ticket.user) == ticket.id end
local function is_waiting(ticket) return is_queued(ticket) and not is_expired(ticket) and is_users_ticket(ticket) end

-- An ended ticket keeps its record until its end is acked. If the end is missing, it was lost.
local function is_known(ticket)
  return is_queued(ticket) or #redis.call('XRANGE', ends, ticket.entry, ticket.entry) > 0
end

local function write(ticket) redis.call('HSET', tickets, ticket.id, cjson.encode(ticket)) end

local function enqueue(ticket)
  write(ticket)
  redis.call('HSET', users, ticket.user, ticket.id)
  redis.call('ZADD', queue, ticket.joined, ticket.id)
  redis.call('ZADD', deadlines, math.min(ticket.expires, ticket.alive), ticket.id)
end

local function dequeue(ticket)
  redis.call('ZREM', queue, ticket.id)
  redis.call('ZREM', deadlines, ticket.id)
end

local function append_end(kind, ...) return redis.call('XADD', ends, '*', 'kind', kind, 'at', now, ...) end

-- The record and the user's entry stay until PostgreSQL has the end, so that the ticket can be found.
local function save_end(ticket, state, entry)
  ticket.state, ticket.entry = state, entry
  write(ticket)
end

local function finish(ticket, state, entry)
  dequeue(ticket)
  save_end(ticket, state, entry)
end

local function cancel(ticket, raw) finish(ticket, 'CANCELLED', append_end('cancelled', 'id', ticket.id, 'ticket', raw)) end

local function expire(ticket, raw, reason)
  reason = reason or (ticket.expires <= now and 'timeout' or 'heartbeat')
  finish(ticket, 'EXPIRED', append_end('expired', 'reason', reason, 'id', ticket.id, 'ticket', raw))
end

local function cancel_or_expire(ticket, raw)
  if is_expired(ticket) then expire(ticket, raw) else cancel(ticket, raw) end
end

local function quarantine(id, raw, why)
  append_end('damaged', 'id', id, 'raw', raw, 'why', why)
  redis.call('HDEL', tickets, id)
  redis.call('ZREM', queue, id)
  redis.call('ZREM', deadlines, id)
end

local function forget(id)
  local ticket = read(id) or { id = id, user = '' }
  dequeue(ticket)
  if is_users_ticket(ticket) then redis.call('HDEL', users, ticket.user) end
  redis.call('HDEL', tickets, id)
end

local function alive_until(ticket, heartbeat_ms)
  return heartbeat_ms and math.min(ticket.expires, now + heartbeat_ms) or ticket.expires
end

-- Seats are { ticket, raw, team }.
local function match(match_id, region, terms, seats)
  local fields, ids = { 'match', match_id, 'region', region, 'terms', terms }, {}
  for index, seat in ipairs(seats) do
    ids[index] = seat.ticket.id
    for _, field in ipairs({ 'id', seat.ticket.id, 'team', seat.team, 'ticket', seat.raw }) do
      fields[#fields + 1] = field
    end
  end
  local entry = append_end('match', unpack(fields))
  redis.call('ZREM', queue, unpack(ids))
  redis.call('ZREM', deadlines, unpack(ids))
  for _, seat in ipairs(seats) do
    seat.ticket.match = match_id
    save_end(seat.ticket, 'MATCHED', entry)
  end
end
`;

export const script = (text: string): Script => createScript(prelude + text);
