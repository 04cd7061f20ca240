/** The provider's outages as a player sees them: outages, logouts there, new keys and refreshed tokens. */
import { type ControlledProvider, externalProvider, startControlledProvider } from "@todoke/identity/testing";
import { freePort, testDatabase } from "@todoke/kernel/testing";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findBrowser, type OpenBrowser, openBrowser } from "./browser.ts";
import { loginSettings, startLocalSetup } from "./local-setup.ts";
import { confirmLogout, enterPassword, logIn as logInAt } from "./provider-pages.ts";

const executable = await findBrowser();
const inBrowser = test.skipIf(!executable);

const started = new AsyncDisposableStack();
let provider: ControlledProvider;
let database: Awaited<ReturnType<typeof testDatabase>>;
let browser: OpenBrowser;

beforeAll(async () => {
  if (!executable) return;
  provider = started.use(externalProvider() ?? (await startEmbedded()));
  database = started.use(await testDatabase({ sets: [] }));
  // The gateway has never seen the provider when the first test begins.
  await provider.stop();
  const settings = { GATEWAY_BFF_LIMIT_LOGIN: "1000/60s", DATABASE_URL: database.url };
  started.use(await startLocalSetup({ ...settings, ...loginSettings(provider) }));
  browser = started.use(await openBrowser(executable));
}, 240_000);
afterAll(() => started.disposeAsync());

async function startEmbedded(): Promise<ControlledProvider> {
  const port = await freePort();
  return startControlledProvider({
    origin: `http://localhost:${port}`,
    backchannelLogoutUri: `http://127.0.0.1:${port}/login/backchannel-logout`,
  });
}

const logIn = (person: BrowserContext, name: string) => logInAt(person, provider.origin, name);

const statusOfMe = (page: Page): Promise<number> =>
  page.evaluate(`fetch("/v1/me", { headers: { "x-todoke-request": "1" } }).then(({ status }) => status)`);

inBrowser("while the provider is away a page says so, and logins work when it is back", async () => {
  const person = await browser.person();
  const page = await person.newPage();
  expect((await page.goto(`${provider.origin}/login`))?.status()).toBe(503);
  expect(await page.locator('a[href="/login"]').count()).toBe(1);

  await provider.start();
  const asksForName = async () => {
    await page.goto(`${provider.origin}/login`);
    return page.locator("input[name=username]").count();
  };
  await expect.poll(asksForName).toBe(1);
  await enterPassword(page, provider.origin, "alice");
  expect(await statusOfMe(page)).toBe(200);
  await person.close();
});

inBrowser("a logout at the provider ends the session here", async () => {
  const person = await browser.person();
  const page = await logIn(person, "alice");
  const metadata = await fetch(`${provider.issuer}/.well-known/openid-configuration`);
  const { end_session_endpoint } = (await metadata.json()) as { end_session_endpoint: string };
  const there = await person.newPage();
  await there.goto(end_session_endpoint);
  await confirmLogout(there);
  await expect.poll(() => statusOfMe(page)).toBe(401);
  await page.reload();
  await page.locator("#log-in").waitFor();
  await person.close();
});

/** The encrypted tokens of the newest session. */
const readTokens = async (): Promise<string> => {
  const newest = `select provider_tokens from gateway_bff.sessions order by created_at desc limit 1`;
  return (await database.db.query(newest)).rows[0].provider_tokens.toString("hex");
};

/** Makes every session due for a refresh, and waits until the next request of the page has refreshed its own. */
async function expectRefresh(page: Page): Promise<void> {
  const before = await readTokens();
  await database.db.query(`update gateway_bff.sessions set refresh_due_at = now() - interval '1 second'`);
  expect(await statusOfMe(page)).toBe(200);
  await expect.poll(readTokens).not.toBe(before);
  expect(await statusOfMe(page)).toBe(200);
}

inBrowser("tokens are refreshed while a player uses the page, also after the provider rotated its keys", async () => {
  const [first, second] = [await browser.person(), await browser.person()];
  const alice = await logIn(first, "alice");
  await expectRefresh(alice);
  await expectRefresh(alice);
  await provider.rotateKeys();
  await expectRefresh(alice);
  const bob = await logIn(second, "bob");
  expect(await statusOfMe(bob)).toBe(200);
  await Promise.all([first.close(), second.close()]);
});

inBrowser("a session goes on while the provider is away, and can be ended", async () => {
  const person = await browser.person();
  const page = await logIn(person, "alice");
  await provider.stop();
  try {
    expect(await statusOfMe(page)).toBe(200);
    await page.reload();
    const loggedOut = page.waitForResponse((response) => response.url().endsWith("/logout"));
    await page.locator("#log-out").click();
    expect((await loggedOut).status()).toBe(200);
    const other = await person.newPage();
    await other.goto(provider.origin);
    await other.locator("#log-in").waitFor();
    expect(await statusOfMe(other)).toBe(401);
  } finally {
    await provider.start();
  }
  await person.close();
});
