import { queueConformance } from "../conformance.ts";
import { createPostgresHarness } from "./testing.ts";

queueConformance({ name: "postgres", createHarness: createPostgresHarness });
