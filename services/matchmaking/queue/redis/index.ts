/** The queue in Redis. workers/recorder.ts records its ends in PostgreSQL. */
export { openRedisQueue, type RedisQueueOptions } from "./redis-queue.ts";
