import { sharedRedis } from "@todoke/redis/testing";
import { queueConformance } from "../conformance.ts";
import { createRedisHarness } from "./testing.ts";

const redis = sharedRedis();

queueConformance({ name: "redis", createHarness: () => createRedisHarness(redis, { recorders: 2 }) });
