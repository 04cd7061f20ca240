import { sharedRedis } from "@todoke/redis/testing";
import { sessionsConformance } from "./conformance.ts";
import { postgresHarness, redisHarness } from "./testing.ts";

const redis = sharedRedis();

sessionsConformance({ name: "postgres", stage: postgresHarness });
sessionsConformance({ name: "redis", stage: () => redisHarness(redis) });
