/** Redis for services: every call is a script that declares its keys, and returns or fails within two seconds. */
export { connectRedis, type RedisConnection, type RedisOptions, RedisUnavailable } from "./connection.ts";
export { createScript, type Script, type ScriptInput } from "./script.ts";
export { findPrimary } from "./sentinel.ts";
export { parseRedisUrl, type RedisUrl } from "./url.ts";
