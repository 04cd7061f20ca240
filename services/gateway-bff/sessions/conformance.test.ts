import { sessionsConformance } from "./conformance.ts";
import { postgresStage, redisStage, sharedRedis } from "./testing.ts";

const redis = sharedRedis();

sessionsConformance({ name: "postgres", stage: postgresStage });
sessionsConformance({ name: "redis", stage: () => redisStage(redis) });
