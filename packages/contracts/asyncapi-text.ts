/** gen/asyncapi.json, which asyncapi.ts makes from the .proto files. */
import { readFileSync } from "node:fs";

let text: string | undefined;

/** Read at the first call. */
export const asyncApiText = (): string =>
  (text ??= readFileSync(new URL("./gen/asyncapi.json", import.meta.url), "utf8"));
