import { hash } from "node:crypto";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { buildHttpApp } from "./app.ts";
import { docsPage } from "./docs-page.ts";

test("the page loads from its own origin only, and its policy allows no other", async () => {
  await using app = await buildHttpApp({ title: "Points", version: "1", log: { level: "silent" } });
  await docsPage(app, { title: "Points" });

  const page = await app.inject("/docs/");
  const sources = [...page.body.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, source = ""]) => source);
  const [script] = sources;

  expect(page.statusCode).toBe(200);
  expect(sources).toEqual([expect.stringMatching(/^js\/scalar\.[0-9a-f]{16}\.js$/)]);
  expect(page.body).not.toMatch(/https?:\/\//);
  const response = await app.inject(new URL(script ?? "", "http://localhost/docs/").pathname);
  expect(response.headers["content-type"]).toMatch("application/javascript");
  expect(response.body).toContain("createApiReference");
  expect(page.body).toContain('"url": "/openapi.json"');
  expect((await app.inject("/openapi.json")).json().info.title).toBe("Points");
});

test("only the page's own script runs", async () => {
  await using app = await buildHttpApp({ title: "Points", version: "1", log: { level: "silent" } });
  await docsPage(app, { sources: [{ title: "points", url: "/points/openapi.json" }] });

  const page = await app.inject("/docs/");
  const policy = String(page.headers["content-security-policy"]);
  const inline = page.body.match(/<script type="text\/javascript">([\s\S]*?)<\/script>/)?.[1] ?? "";

  expect(inline).toContain("/points/openapi.json");
  expect(policy).toContain(`script-src 'self' 'sha256-${hash("sha256", inline, "base64")}'`);
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("connect-src 'self'");
  expect(policy).toContain("form-action 'none'");
  expect(page.headers["referrer-policy"]).toBe("no-referrer");
  expect(policy).not.toMatch(/unsafe-eval|script-src[^;]*unsafe-inline|https?:/);
});

test("the page has no operation in the document it shows", async () => {
  await using app = await buildHttpApp({ title: "Points", version: "1", log: { level: "silent" } });
  await docsPage(app);
  expect((await app.inject("/openapi.json")).json().paths).toEqual({});
});

test("no other site may read the resources of the page", async () => {
  await using app = await buildHttpApp({ title: "Points", version: "1", log: { level: "silent" } });
  await docsPage(app, { sources: [{ title: "points", url: "/points/openapi.json" }] });
  for (const path of ["/docs/", "/docs/openapi.json", "/docs/openapi.yaml"]) {
    const { statusCode, headers } = await app.inject(path);
    expect(statusCode).toBe(200);
    expect(Object.keys(headers).filter((name) => name.startsWith("access-control-"))).toEqual([]);
  }
});

test("the script has its hash in its path, and is compressed and cached", async () => {
  await using app = await buildHttpApp({ title: "Points", version: "1", log: { level: "silent" } });
  await docsPage(app);
  const [, path = ""] = /src="([^"]*)"/.exec((await app.inject("/docs/")).body) ?? [];
  const get = (headers: Record<string, string>) => app.inject({ url: `/docs/${path}`, headers });

  const whole = await get({});
  expect(whole.headers["cache-control"]).toBe("public, max-age=31536000, immutable");
  expect(path).toContain(hash("sha256", whole.body, "hex").slice(0, 16));
  const [br, gzip] = [await get({ "accept-encoding": "gzip, br" }), await get({ "accept-encoding": "gzip, br;q=0" })];
  expect([br.headers["content-encoding"], gzip.headers["content-encoding"]]).toEqual(["br", "gzip"]);
  for (const { headers, rawPayload } of [br, gzip]) {
    expect(headers.vary).toBe("accept-encoding");
    expect(rawPayload.length).toBeLessThan(whole.rawPayload.length / 3);
  }
  expect(brotliDecompressSync(br.rawPayload).equals(whole.rawPayload)).toBe(true);
  expect(gunzipSync(gzip.rawPayload).equals(whole.rawPayload)).toBe(true);

  const known = await get({ "if-none-match": String(whole.headers.etag) });
  expect([known.statusCode, known.body]).toEqual([304, ""]);
  // The page itself is made anew for everybody, and the script is nowhere else.
  expect((await app.inject("/docs/")).headers["cache-control"]).toBe("no-store");
  expect((await app.inject("/docs/js/scalar.js")).statusCode).toBe(404);
});
