import { sharedRedis } from "@todoke/redis/testing";
import { queueConformance } from "../conformance.ts";
import { redisStage } from "./testing.ts";

const redis = sharedRedis();

queueConformance({ name: "redis", stage: () => redisStage(redis, { recorders: 2 }) });
