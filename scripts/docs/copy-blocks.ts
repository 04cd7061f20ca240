/** `npm run docs:ja` copies the code blocks of each English page into its translation. Sentences and tables are for a person. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { translatedPages } from "./translated-pages.ts";
import { withBlocksOf } from "./translation.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

for (const { english, japanese } of translatedPages) {
  const [original, translated] = [english, japanese].map((path) => readFileSync(join(root, path), "utf8"));
  const updated = withBlocksOf(original ?? "", translated ?? "");
  if (updated === undefined)
    console.log(`${japanese} has another number of code blocks than ${english}: add or remove them first`);
  else if (updated !== translated) {
    writeFileSync(join(root, japanese), updated);
    console.log(`${japanese} has the code blocks of ${english}`);
  }
}
