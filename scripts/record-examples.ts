/** `npm run examples`: sends a request of every operation to running services, and records it for the API documents. */
import { writeFileSync } from "node:fs";
import { runExamples } from "../flows/api-examples.ts";
import { startServices } from "./running-services.ts";

await using running = await startServices();
const examples = await runExamples(running.services, running.documents);
const file = new URL("../packages/contracts/api/examples.json", import.meta.url);
const sorted = [...examples].toSorted(([a], [b]) => (a < b ? -1 : 1));
writeFileSync(file, `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`);
console.log(`recorded ${sorted.length} examples`);
