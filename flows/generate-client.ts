/**
 * `npm run client`: writes packages/client/gen from the OpenAPI documents of the services, which it starts on a database of its own.
 * Run it after a change of a route or of a problem; flows/generated-client.test.ts fails until then.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { EngineNotFound, findEngine } from "@todoke/engines";
import { readDocuments } from "./client/documents.ts";
import { emitClient } from "./client/emit.ts";
import { readProblemCodes } from "./client/problem-codes.ts";

const postgres = await findEngine("postgres");
if (postgres instanceof EngineNotFound) throw postgres;
await using _stopped = postgres;
process.env.TEST_POSTGRES_URL = postgres.url;
const folder = new URL("../packages/client/gen/", import.meta.url);
mkdirSync(folder, { recursive: true });
const files = emitClient(await readDocuments(), readProblemCodes());
for (const [name, text] of Object.entries(files)) writeFileSync(new URL(name, folder), text);
console.log(`packages/client/gen: ${Object.keys(files).join(", ")}`);
