import { findBrowser, openBrowser } from "./browser.ts";
import { startSite } from "./site.ts";
const site = await startSite();
const browser = await openBrowser((await findBrowser()) ?? "");
try {
  const person = await browser.person("ja-JP");
  const page = await person.newPage();
  await page.goto(site.origin);
  await page.locator("#log-in").click();
  await page.locator("input[name=username]").fill("alice");
  await page.locator("input[name=password]").fill("alice-demo");
  await page.locator("button[type=submit]").click();
  await page.locator("#log-out").waitFor();
  const me = await page.evaluate(async () => (await fetch("/v1/me")).json()) as { user_id: string };
  const call = (method: string, path: string, body: object) => fetch(site.urlOf("points") + path, { method, headers: { authorization: "Bearer tdk_dev", "content-type": "application/json", "idempotency-key": crypto.randomUUID() }, body: JSON.stringify({ user_id: me.user_id, ...body }) });
  console.log((await call("PUT", "/point/add", { point_amount: 500, expires_at: new Date(Date.now() + 864e6).toISOString() })).status);
  console.log((await call("PUT", "/point/add", { point_amount: "9007199254740993" })).status);
  console.log((await call("POST", "/point/reserve", { point_amount: 70, execute_at: "2030-01-01T00:00:00Z" })).status);
  console.log((await call("PUT", "/point/sub", { point_amount: 20 })).status);
  await page.locator(".expiring", { hasText: "480" }).waitFor();
  await page.screenshot({ path: "/tmp/shot/page.png", fullPage: true });
} finally { await browser[Symbol.asyncDispose](); await site[Symbol.asyncDispose](); }
