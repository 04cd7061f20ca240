import { hash } from "node:crypto";
import { expect, test } from "vitest";
import { buildHttpApp } from "./app.ts";
import { docsPage } from "./docs-page.ts";

test("the page works without the internet: all it needs comes from here, and its policy lets it reach nothing else", async () => {
  await using app = await buildHttpApp({ title: "Points", version: "1", log: { level: "silent" } });
  await docsPage(app, { title: "Points" });

  const page = await app.inject("/docs/");
  const sources = [...page.body.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, source = ""]) => source);
  const [script] = sources;

  expect(page.statusCode).toBe(200);
  expect(sources).toEqual(["js/scalar.js"]);
  expect(page.body).not.toMatch(/https?:\/\//);
  const answer = await app.inject(new URL(script ?? "", "http://localhost/docs/").pathname);
  expect(answer.headers["content-type"]).toMatch("application/javascript");
  expect(answer.body).toContain("createApiReference");
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

test("no other site may read what is served for the page", async () => {
  await using app = await buildHttpApp({ title: "Points", version: "1", log: { level: "silent" } });
  await docsPage(app, { sources: [{ title: "points", url: "/points/openapi.json" }] });
  for (const path of ["/docs/", "/docs/openapi.json", "/docs/openapi.yaml"]) {
    const { statusCode, headers } = await app.inject(path);
    expect(statusCode).toBe(200);
    expect(Object.keys(headers).filter((name) => name.startsWith("access-control-"))).toEqual([]);
  }
});
