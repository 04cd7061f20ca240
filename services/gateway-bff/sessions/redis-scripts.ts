/**
 * Sessions in Redis, as scripts: each runs whole and alone, by Redis' own clock.
 *
 * All sessions lie in six keys, and every script declares all six; so nothing that a script touches is hidden from a
 * cluster or from access rules, though a look-up learns whose session it is only on the way. A session counts only while
 * its user is known and the index has it, by which it can be ended: what a lost key leaves behind lets nobody in.
 *
 *   by_token  the SHA-256 of a token -> session id
 *   sessions  session id -> session, as JSON
 *   secrets   session id -> the provider's tokens, encrypted
 *   index     "u\0<user>\0<session id>", "s\0<issuer>\0<subject>\0…", "p\0<issuer>\0<provider's session>\0…", sorted
 *   ends      session id, by the time at which it is over unless it is used
 *   known     user id -> what account last told of the user, as JSON
 *
 * ARGV[1] is always the idle time. Whatever can fail comes before the first write: what a script wrote is not undone.
 */
import { type Script, scriptOf } from "@todoke/redis";

const keyNames = ["by-token", "sessions", "secrets", "index", "ends", "known"];

/** The braces are the hash tag: whatever the place, all of its keys lie in one slot of a cluster. */
export const keysOf = (place: string): string[] => keyNames.map((name) => `{${place}}:${name}`);

const words = `
local by_token, sessions, secrets, index, ends, known = unpack(KEYS)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local idle = tonumber(ARGV[1])

local function kept(id)
  local text = id and redis.call('HGET', sessions, id)
  return text and cjson.decode(text)
end

local function lives(session)
  return session and session.ends > now and session.seen + idle > now
end

local function write(session)
  redis.call('HSET', sessions, session.id, cjson.encode(session))
  redis.call('ZADD', ends, math.min(session.ends, session.seen + idle), session.id)
end

local function names_of(session)
  local names = { 'u\\0' .. session.user, 's\\0' .. session.issuer .. '\\0' .. session.subject }
  if session.provider_session then names[3] = 'p\\0' .. session.issuer .. '\\0' .. session.provider_session end
  for i, name in ipairs(names) do names[i] = name .. '\\0' .. session.id end
  return names
end

local function all_under(name)
  local found = {}
  for _, entry in ipairs(redis.call('ZRANGEBYLEX', index, '[' .. name .. '\\0', '(' .. name .. '\\1')) do
    local session = kept(string.sub(entry, #name + 2))
    if session then found[#found + 1] = session end
  end
  return found
end

local function finish(session)
  redis.call('HDEL', by_token, session.token)
  redis.call('HDEL', sessions, session.id)
  redis.call('HDEL', secrets, session.id)
  redis.call('ZREM', ends, session.id)
  redis.call('ZREM', index, unpack(names_of(session)))
end

local function finish_all(list)
  local lived = 0
  for _, session in ipairs(list) do
    if lives(session) then lived = lived + 1 end
    finish(session)
  end
  return lived
end
`;

const script = (text: string): Script => scriptOf(words + text);

/**
 * The session, its secret, how long until a refresh is due or "", the absolute time, the most sessions of one user, when
 * the log-in began or "". KEYS[7] and KEYS[8] are where log-outs of its subject and of its session at the provider are.
 */
export const create = script(`
local session = cjson.decode(ARGV[2])
local subject_ended = tonumber(redis.call('GET', KEYS[7]) or -1)
if subject_ended >= (tonumber(ARGV[7]) or math.huge) then return -1 end
if KEYS[8] and redis.call('EXISTS', KEYS[8]) == 1 then return -1 end
local user = redis.call('HGET', known, session.user)
if not user or cjson.decode(user).status == 'DELETED' then return 0 end
local living, over = {}, {}
for _, other in ipairs(all_under('u\\0' .. session.user)) do
  if lives(other) then living[#living + 1] = other else over[#over + 1] = other end
end
table.sort(living, function(a, b)
  if a.created == b.created then return a.id < b.id end
  return a.created < b.created
end)
for i = 1, #living - tonumber(ARGV[6]) + 1 do over[#over + 1] = living[i] end
session.created, session.seen, session.ends = now, now, now + ARGV[5]
session.epoch, session.due = 0, ARGV[4] ~= '' and now + ARGV[4] or nil
finish_all(over)
redis.call('HSET', by_token, session.token, session.id)
redis.call('HSET', secrets, session.id, ARGV[3])
for _, name in ipairs(names_of(session)) do redis.call('ZADD', index, 0, name) end
write(session)
return 1`);

/** Token's hash, and how long ago a session must have been seen to be written as seen again. */
export const find = script(`
local session = kept(redis.call('HGET', by_token, ARGV[2]))
if not lives(session) then return nil end
if not redis.call('ZSCORE', index, 'u\\0' .. session.user .. '\\0' .. session.id) then return nil end
local user = redis.call('HGET', known, session.user)
if not user or cjson.decode(user).status == 'DELETED' then return nil end
if session.seen + ARGV[3] <= now then
  session.seen = now
  write(session)
end
return { cjson.encode(session), user, now }`);

/** User id. */
export const list = script(`
local found = {}
for _, session in ipairs(all_under('u\\0' .. ARGV[2])) do
  if lives(session) then found[#found + 1] = cjson.encode(session) end
end
return found`);

/** User id, session id. */
export const endOne = script(`
local session = kept(ARGV[3])
if not session or session.user ~= ARGV[2] then return 0 end
return finish_all({ session })`);

/** User id, and the id of the session that stays or "". */
export const endAll = script(`
local ending = {}
for _, session in ipairs(all_under('u\\0' .. ARGV[2])) do
  if session.id ~= ARGV[3] then ending[#ending + 1] = session end
end
return finish_all(ending)`);

/**
 * "p" and the provider's session or "s" and the subject, after the issuer; the subject or ""; what is kept of the token,
 * and for how long. KEYS[7] is where tokens that were used are, KEYS[8] where the log-out is remembered.
 */
export const endByProvider = script(`
if redis.call('EXISTS', KEYS[7]) == 1 then return -1 end
local ending = {}
for _, session in ipairs(all_under(ARGV[3] .. '\\0' .. ARGV[2] .. '\\0' .. ARGV[4])) do
  if ARGV[5] == '' or session.subject == ARGV[5] then ending[#ending + 1] = session end
end
redis.call('SET', KEYS[7], ARGV[6], 'PX', ARGV[7])
redis.call('SET', KEYS[8], string.format('%.0f', now), 'PX', ARGV[7])
return finish_all(ending)`);

export const clock = script(`return now`);

/** User id, version, status, all of it. */
export const know = script(`
local old = redis.call('HGET', known, ARGV[2])
if old and tonumber(cjson.decode(old).version) >= tonumber(ARGV[3]) then return 0 end
local ending = ARGV[4] == 'ACTIVE' and {} or all_under('u\\0' .. ARGV[2])
redis.call('HSET', known, ARGV[2], ARGV[5])
finish_all(ending)
return 1`);

/** Session id. */
export const tokensOf = script(`
return lives(kept(ARGV[2])) and redis.call('HGET', secrets, ARGV[2]) or nil`);

/** Session id, hold. The due time moves to the end of the turn: if nobody lives to end it, it is due again. */
export const takeRefresh = script(`
local session = kept(ARGV[2])
if not lives(session) or not session.due or session.due > now then return nil end
session.epoch, session.due = session.epoch + 1, now + ARGV[3]
write(session)
return { session.issuer, session.epoch, redis.call('HGET', secrets, session.id) }`);

/** Session id, epoch, how long until the next one is due or "", new secret or "". */
export const endRefresh = script(`
local session = kept(ARGV[2])
if not lives(session) or session.epoch ~= tonumber(ARGV[3]) then return 0 end
session.epoch, session.due = session.epoch + 1, ARGV[4] ~= '' and now + ARGV[4] or nil
write(session)
if ARGV[5] ~= '' then redis.call('HSET', secrets, session.id, ARGV[5]) end
return 1`);

/** Session id, epoch. */
export const endRefused = script(`
local session = kept(ARGV[2])
if not session or session.epoch ~= tonumber(ARGV[3]) then return 0 end
return finish_all({ session })`);

/** How many to look at. One that lives after all, because the idle time was changed, gets its new end. */
export const removeEnded = script(`
local due = redis.call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, ARGV[2])
local removed = 0
for _, id in ipairs(due) do
  local session = kept(id)
  if lives(session) then
    write(session)
  elseif session then
    finish(session)
    removed = removed + 1
  else
    redis.call('ZREM', ends, id)
  end
end
return { #due, removed }`);

/** Each of these has a key of its own, which goes by itself when its time is over. */
export const put = scriptOf(`return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') and 1 or 0`);
export const take = scriptOf(`return redis.call('GETDEL', KEYS[1])`);
