import { queueConformance } from "../conformance.ts";
import { postgresStage } from "./testing.ts";

queueConformance({ name: "postgres", stage: postgresStage });
