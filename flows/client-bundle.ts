/** The client as one script, which a test runs in a page. */
import { createRequire } from "node:module";
import { rolldown } from "rolldown";

/** Sets `globalThis.todokeClient`. */
export async function bundleClient(): Promise<string> {
  const input = createRequire(import.meta.url).resolve("@todoke/client");
  const made = await rolldown({ input, platform: "browser", logLevel: "silent" });
  const { output } = await made.generate({ format: "iife", name: "todokeClient" });
  await made.close();
  return `${output[0].code}; globalThis.todokeClient = todokeClient;`;
}
