import { buildHttpApp } from "@todoke/http";
import { expect, test } from "vitest";
import { sendHsts } from "./tls.ts";

test("every response has HSTS, also a 404", async () => {
  await using app = await buildHttpApp({ title: "t", version: "0", log: { level: "silent" } });
  sendHsts(app);
  app.get("/", { schema: { hide: true } }, async () => ({}));
  for (const url of ["/", "/nothing"])
    expect((await app.inject(url)).headers["strict-transport-security"]).toBe("max-age=31536000");
});
