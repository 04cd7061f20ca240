import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { expect, test } from "vitest";

/** The bundle of a browser that uses everything. */
async function bundle(platform: "browser" | "node", input: string) {
  const made = await rolldown({ input: new URL(input, import.meta.url).pathname, platform, logLevel: "silent" });
  const { output } = await made.generate({ format: "esm", minify: true });
  await made.close();
  return output;
}

const sizeOf = (output: Awaited<ReturnType<typeof bundle>>) =>
  output.reduce((sum, part) => sum + gzipSync(part.type === "chunk" ? part.code : part.source).length, 0);

test("a browser that uses everything loads less than 10 KB", async () => {
  const output = await bundle("browser", "./index.ts");
  console.log(`@todoke/client: ${sizeOf(output)} bytes gzipped`);
  expect(sizeOf(output)).toBeLessThan(10 * 1_024);
  // No import is left: there is no dependency, and nothing of Node.
  expect(output.flatMap((part) => (part.type === "chunk" ? [...part.imports, ...part.dynamicImports] : []))).toEqual(
    [],
  );
});

test("the webhook verifier is less than 1.5 KB, and has no imports", async () => {
  const output = await bundle("browser", "./webhooks.ts");
  console.log(`@todoke/client/webhooks: ${sizeOf(output)} bytes gzipped`);
  expect(sizeOf(output)).toBeLessThan(1_536);
  expect(output.flatMap((part) => (part.type === "chunk" ? part.imports : []))).toEqual([]);
});
