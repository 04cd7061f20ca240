import Fastify from "fastify";
import { expect, test } from "vitest";
import { sendLanding } from "./landing.ts";

async function landing(path: string) {
  const app = Fastify();
  app.get("/", (_request, reply) => sendLanding(reply, path));
  return app.inject({ url: "/" });
}

test("the landing page refreshes to the path and has a link", async () => {
  const { statusCode, headers, body } = await landing("/play?level=1&mode=a");
  expect(statusCode).toBe(200);
  expect(headers["content-type"]).toBe("text/html; charset=utf-8");
  expect(headers["referrer-policy"]).toBe("no-referrer");
  expect(headers["content-security-policy"]).toContain("default-src 'none'");
  expect(body).toContain(`<meta http-equiv="refresh" content="0; url=/play?level=1&amp;mode=a">`);
  expect(body).toContain(`<a href="/play?level=1&amp;mode=a">`);
});

test("a path is escaped in the landing page", async () => {
  const { body } = await landing(`/"><script>alert('1')</script>&amp;`);
  expect(body).not.toContain("<script");
  expect(body).toContain("/&quot;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;amp;");
});
