/** Redis for services: every call is a script that declares its keys, and returns or fails within two seconds. */
export { openRedisLink, type RedisLink, type RedisLinkOptions, RedisUnavailable } from "./connection.ts";
export { type Script, type ScriptInput, scriptOf } from "./script.ts";
