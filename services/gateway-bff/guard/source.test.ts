import { buildHttpApp, problems } from "@todoke/http";
import { expect, test } from "vitest";
import { setRequestSource } from "./source.ts";

test.each([
  [0, "127.0.0.1"],
  [1, "198.51.100.7"],
  [2, "203.0.113.1"],
])("behind %i trusted proxies a refusal is logged with the address %s", async (trustedProxies, address) => {
  const lines: string[] = [];
  const log = { stream: { write: (line: string) => void lines.push(line) } };
  await using app = await buildHttpApp({ title: "t", version: "0", log });
  setRequestSource(app, { trustedProxies });
  app.get("/", { schema: { hide: true } }, async () => {
    throw problems.forbidden("not for you");
  });
  for (const url of ["/", "/nothing"])
    await app.inject({ url, headers: { "x-forwarded-for": "192.0.2.9, 203.0.113.1, 198.51.100.7" } });
  const refused = { msg: "refused", address };
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([refused, refused]);
});
