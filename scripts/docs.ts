/**
 * `npm run docs`: builds the documentation site into dist/docs, from the pages of the repository and from the API documents of
 * running services. Links are checked: a broken one fails the build. The site loads nothing from elsewhere (docs/adr/0132).
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readApiDocument } from "./docs/site/api-reference.ts";
import { buildSite } from "./docs/site/build.ts";
import { startServices } from "./running-services.ts";
import { fetchTools } from "./test/tools.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const out = join(root, "dist/docs");

const fetched = await fetchTools(AbortSignal.timeout(300_000));
if (fetched.skipped > 0) throw new Error("the tools of the site could not be fetched: npm ci --prefix tools");
await using running = await startServices();
rmSync(out, { recursive: true, force: true });
const { pages, faults } = await buildSite({ root, out, apiDocument: await readApiDocument(running.services) });
for (const fault of faults) console.error(fault);
console.log(`${pages} pages in dist/docs: open dist/docs/index.html, or serve the folder`);
if (faults.length > 0) process.exitCode = 1;
