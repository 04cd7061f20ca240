import { buildHttpApp } from "@todoke/http";
import { expect, test } from "vitest";
import { sendHsts } from "./tls.ts";

test("every answer has the browser come by TLS from now on, also that there is nothing at a path", async () => {
  await using app = await buildHttpApp({ title: "t", version: "0", log: { level: "silent" } });
  sendHsts(app);
  app.get("/", { schema: { hide: true } }, async () => ({}));
  for (const url of ["/", "/nothing"])
    expect((await app.inject(url)).headers["strict-transport-security"]).toBe("max-age=31536000");
});
