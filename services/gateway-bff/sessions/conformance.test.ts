import { sharedRedis } from "@todoke/redis/testing";
import { sessionsConformance } from "./conformance.ts";
import { postgresStage, redisStage } from "./testing.ts";

const redis = sharedRedis();

sessionsConformance({ name: "postgres", stage: postgresStage });
sessionsConformance({ name: "redis", stage: () => redisStage(redis) });
