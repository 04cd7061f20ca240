/**
 * Redis for services: everything is a script, which declares its keys, and every call answers or fails within two seconds.
 */
export { openRedisLink, type RedisLink, type RedisLinkOptions, RedisUnavailable } from "./link.ts";
export { type Script, type ScriptInput, scriptOf } from "./script.ts";
