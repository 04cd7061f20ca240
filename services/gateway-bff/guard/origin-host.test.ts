import Fastify from "fastify";
import { expect, test } from "vitest";
import { redirectToOrigin } from "./origin-host.ts";

async function get(url: string, { host, accept = "text/html" }: { host: string; accept?: string }) {
  await using app = Fastify();
  redirectToOrigin(app, "http://localhost:8080");
  app.get("*", () => "here");
  const { statusCode, headers } = await app.inject({ url, headers: { host, accept } });
  return statusCode === 307 ? headers.location : statusCode;
}

test("a browser at another loopback name is sent to the origin, with path and query", async () => {
  expect(await get("/login?returnTo=/a", { host: "127.0.0.1:8080" })).toBe("http://localhost:8080/login?returnTo=/a");
  expect(await get("/", { host: "[::1]:8080" })).toBe("http://localhost:8080/");
});

test("programs, the origin itself, other ports and other hosts stay where they are", async () => {
  expect(await get("/", { host: "localhost:8080" })).toBe(200);
  expect(await get("/v1/me", { host: "127.0.0.1:8080", accept: "application/json" })).toBe(200);
  expect(await get("/", { host: "127.0.0.1:9999" })).toBe(200);
  expect(await get("/", { host: "10.0.0.1:8080" })).toBe(200);
});

test("a path never leads to another site", async () => {
  expect(await get("//evil.example/a", { host: "127.0.0.1:8080" })).toBe("http://localhost:8080//evil.example/a");
});
