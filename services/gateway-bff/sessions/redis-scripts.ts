/**
 * The Lua scripts of sessions in Redis. Each is atomic and uses Redis' own clock.
 *
 * All sessions are in six keys, and every script declares all six: nothing that a script touches is hidden from a cluster
 * or from access rules, although a look-up learns whose session it is only on the way. A session counts only while its
 * user is stored and the index lists it: leftovers of a lost key grant no access.
 *
 *   by_token  SHA-256 of a token -> session ID
 *   sessions  session ID -> session, as JSON
 *   secrets   session ID -> the provider's tokens, encrypted
 *   index     "u\0<user>\0<session ID>", "s\0<issuer>\0<subject>\0…", "p\0<issuer>\0<provider session>\0…", sorted
 *   ends      session ID, by the time at which it expires unless it is used
 *   known     user ID -> the copy of account's user, as JSON
 *
 * ARGV[1] is always the idle time. Everything that can fail comes before the first write, because Redis does not roll back.
 */
import { createScript, type Script } from "@todoke/redis";

const keyNames = ["by-token", "sessions", "secrets", "index", "ends", "known"];

/** The braces are the hash tag: all keys of a namespace are in one slot of a cluster. */
export const redisKeys = (namespace: string): string[] => keyNames.map((name) => `{${namespace}}:${name}`);

const prelude = `
local by_token, sessions, secrets, index, ends, known = unpack(KEYS)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local idle = tonumber(ARGV[1])

local function load(id)
  local text = id and redis.call('HGET', sessions, id)
  return text and cjson.decode(text)
end

local function is_live(session)
  return session and session.ends > now and session.seen + idle > now
end

local function save(session)
  redis.call('HSET', sessions, session.id, cjson.encode(session))
  redis.call('ZADD', ends, math.min(session.ends, session.seen + idle), session.id)
end

local function index_names(session)
  local names = { 'u\\0' .. session.user, 's\\0' .. session.issuer .. '\\0' .. session.subject }
  if session.provider_session then names[3] = 'p\\0' .. session.issuer .. '\\0' .. session.provider_session end
  for i, name in ipairs(names) do names[i] = name .. '\\0' .. session.id end
  return names
end

local function find_by_name(name)
  local found = {}
  for _, entry in ipairs(redis.call('ZRANGEBYLEX', index, '[' .. name .. '\\0', '(' .. name .. '\\1')) do
    local session = load(string.sub(entry, #name + 2))
    if session then found[#found + 1] = session end
  end
  return found
end

local function delete(session)
  redis.call('HDEL', by_token, session.token)
  redis.call('HDEL', sessions, session.id)
  redis.call('HDEL', secrets, session.id)
  redis.call('ZREM', ends, session.id)
  redis.call('ZREM', index, unpack(index_names(session)))
end

local function delete_all(list)
  local live_count = 0
  for _, session in ipairs(list) do
    if is_live(session) then live_count = live_count + 1 end
    delete(session)
  end
  return live_count
end
`;

const script = (text: string): Script => createScript(prelude + text);

/**
 * ARGV: session, sealed tokens, delay until a refresh is due or "", absolute time, sessions per user, start of the login
 * or "". KEYS[7] and KEYS[8] hold logouts of its subject and of its session at the provider.
 */
export const create = script(`
local session = cjson.decode(ARGV[2])
local subject_ended = tonumber(redis.call('GET', KEYS[7]) or -1)
if subject_ended >= (tonumber(ARGV[7]) or math.huge) then return -1 end
if KEYS[8] and redis.call('EXISTS', KEYS[8]) == 1 then return -1 end
local user = redis.call('HGET', known, session.user)
if not user or cjson.decode(user).status == 'DELETED' then return 0 end
local live, surplus = {}, {}
for _, other in ipairs(find_by_name('u\\0' .. session.user)) do
  if is_live(other) then live[#live + 1] = other else surplus[#surplus + 1] = other end
end
table.sort(live, function(a, b)
  if a.created == b.created then return a.id < b.id end
  return a.created < b.created
end)
for i = 1, #live - tonumber(ARGV[6]) + 1 do surplus[#surplus + 1] = live[i] end
session.created, session.seen, session.ends = now, now, now + ARGV[5]
session.epoch, session.due = 0, ARGV[4] ~= '' and now + ARGV[4] or nil
delete_all(surplus)
redis.call('HSET', by_token, session.token, session.id)
redis.call('HSET', secrets, session.id, ARGV[3])
for _, name in ipairs(index_names(session)) do redis.call('ZADD', index, 0, name) end
save(session)
return 1`);

/** ARGV: hash of the token, interval at which the time of use is written. */
export const find = script(`
local session = load(redis.call('HGET', by_token, ARGV[2]))
if not is_live(session) then return nil end
if not redis.call('ZSCORE', index, 'u\\0' .. session.user .. '\\0' .. session.id) then return nil end
local user = redis.call('HGET', known, session.user)
if not user or cjson.decode(user).status == 'DELETED' then return nil end
if session.seen + ARGV[3] <= now then
  session.seen = now
  save(session)
end
return { cjson.encode(session), user, now }`);

/** ARGV: user ID. */
export const list = script(`
local found = {}
for _, session in ipairs(find_by_name('u\\0' .. ARGV[2])) do
  if is_live(session) then found[#found + 1] = cjson.encode(session) end
end
return found`);

/** ARGV: user ID. */
export const getUser = script(`
local user = redis.call('HGET', known, ARGV[2])
return user and { user, now }`);

/** ARGV: user ID, session ID. */
export const endOne = script(`
local session = load(ARGV[3])
if not session or session.user ~= ARGV[2] then return 0 end
return delete_all({ session })`);

/** ARGV: user ID, ID of the session that stays or "". */
export const endAll = script(`
local ending = {}
for _, session in ipairs(find_by_name('u\\0' .. ARGV[2])) do
  if session.id ~= ARGV[3] then ending[#ending + 1] = session end
end
return delete_all(ending)`);

/**
 * ARGV: issuer, "p" and the provider's session or "s" and the subject, subject or "", sealed token ID, its time to live.
 * KEYS[7] is the used token, KEYS[8] the remembered logout.
 */
export const endByProvider = script(`
if redis.call('EXISTS', KEYS[7]) == 1 then return -1 end
local ending = {}
for _, session in ipairs(find_by_name(ARGV[3] .. '\\0' .. ARGV[2] .. '\\0' .. ARGV[4])) do
  if ARGV[5] == '' or session.subject == ARGV[5] then ending[#ending + 1] = session end
end
redis.call('SET', KEYS[7], ARGV[6], 'PX', ARGV[7])
redis.call('SET', KEYS[8], string.format('%.0f', now), 'PX', ARGV[7])
return delete_all(ending)`);

export const clock = script(`return now`);

/** ARGV: user ID, version, status, the whole user. */
export const saveUser = script(`
local old = redis.call('HGET', known, ARGV[2])
if old and tonumber(cjson.decode(old).version) >= tonumber(ARGV[3]) then return 0 end
local ending = ARGV[4] == 'ACTIVE' and {} or find_by_name('u\\0' .. ARGV[2])
redis.call('HSET', known, ARGV[2], ARGV[5])
delete_all(ending)
return 1`);

/** ARGV: session ID. */
export const getIdentity = script(`
local session = load(ARGV[2])
return is_live(session) and { session.issuer, session.subject } or nil`);

/** ARGV: session ID, the user that it belongs to, the user that it belongs to afterwards. */
export const moveToUser = script(`
local session = load(ARGV[2])
if not is_live(session) or (session.user ~= ARGV[3] and session.user ~= ARGV[4]) then return 0 end
redis.call('ZREM', index, unpack(index_names(session)))
session.user = ARGV[4]
for _, name in ipairs(index_names(session)) do redis.call('ZADD', index, 0, name) end
save(session)
return 1`);

/** ARGV: session ID. */
export const getTokens = script(`
return is_live(load(ARGV[2])) and redis.call('HGET', secrets, ARGV[2]) or nil`);

/** ARGV: session ID, lease. The due time moves to the end of the lease, so that after a crash it is due again. */
export const claimRefresh = script(`
local session = load(ARGV[2])
if not is_live(session) or not session.due or session.due > now then return nil end
session.epoch, session.due = session.epoch + 1, now + ARGV[3]
save(session)
return { session.issuer, session.epoch, redis.call('HGET', secrets, session.id) }`);

/** ARGV: session ID, epoch, delay until the next refresh is due or "", new sealed tokens or "". */
export const settleRefresh = script(`
local session = load(ARGV[2])
if not is_live(session) or session.epoch ~= tonumber(ARGV[3]) then return 0 end
session.epoch, session.due = session.epoch + 1, ARGV[4] ~= '' and now + ARGV[4] or nil
save(session)
if ARGV[5] ~= '' then redis.call('HSET', secrets, session.id, ARGV[5]) end
return 1`);

/** ARGV: session ID, epoch. */
export const endOnRefusedRefresh = script(`
local session = load(ARGV[2])
if not session or session.epoch ~= tonumber(ARGV[3]) then return 0 end
return delete_all({ session })`);

/** ARGV: batch size. A session that is live because the idle time was raised gets its new end. */
export const deleteExpired = script(`
local due = redis.call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, ARGV[2])
local removed = 0
for _, id in ipairs(due) do
  local session = load(id)
  if is_live(session) then
    save(session)
  elseif session then
    delete(session)
    removed = removed + 1
  else
    redis.call('ZREM', ends, id)
  end
end
return { #due, removed }`);

/** Each one-time value has a key of its own, which expires. */
export const putOneTime = createScript(`return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') and 1 or 0`);
export const takeOneTime = createScript(`return redis.call('GETDEL', KEYS[1])`);
