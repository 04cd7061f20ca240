/** The queue in Redis, and what puts its ends on record in PostgreSQL. */
export { keepRecording, type Recorder, type RecorderOptions } from "./recorder.ts";
export { openRedisQueue, type RedisQueueOptions } from "./redis.ts";
