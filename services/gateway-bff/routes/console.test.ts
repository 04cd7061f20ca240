import { gzipSync } from "node:zlib";
import { loadConsole } from "@todoke/console";
import { buildHttpApp } from "@todoke/http";
import { expect, test } from "vitest";
import { consoleRoutes } from "./console.ts";

async function startApp() {
  const app = await buildHttpApp({ title: "Gateway", version: "1", log: { level: "silent" } });
  consoleRoutes(app);
  await app.ready();
  return app;
}

test("what a browser loads first is at most 90 KB, compressed", async () => {
  const { assets } = await loadConsole();
  const bytes = [...assets.values()].map((text) => gzipSync(text).length).reduce((sum, size) => sum + size, 0);
  expect(bytes).toBeLessThan(90_000);
});

test("every address below /console gets the page, which may load from its own origin only", async () => {
  await using app = await startApp();
  for (const url of ["/console", "/console/dead/notification/notifications?group=a", "/console/players/u_1"]) {
    const { statusCode, headers, body } = await app.inject(url);
    expect(statusCode).toBe(200);
    expect(headers["content-security-policy"]).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
        "require-trusted-types-for 'script'; trusted-types 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(body).not.toMatch(/<script>|<style|style=|https?:/);
  }
});

test("its files are cached by their names and compressed, and no other file is served", async () => {
  await using app = await startApp();
  const script = /\/console\/assets\/[\w.-]+\.js/.exec((await app.inject("/console")).body)?.[0] ?? "";
  const { headers, statusCode } = await app.inject({ url: script, headers: { "accept-encoding": "gzip" } });
  expect(statusCode).toBe(200);
  expect(headers).toMatchObject({
    "content-type": "text/javascript; charset=utf-8",
    "content-encoding": "gzip",
    "cache-control": "public, max-age=31536000, immutable",
  });
  for (const name of ["none.js", "..%2findex.html", "__proto__"])
    expect((await app.inject(`/console/assets/${name}`)).statusCode).toBe(404);
});
