/** The pages of an OpenID provider as a browser sees them: those of the embedded one, and of Keycloak. */
import type { BrowserContext, Page } from "playwright-core";
import { expect } from "vitest";

const confirmation = "button[name=logout], button[type=submit], input[type=submit]";

/** Logs in from our page, and returns when it shows the player. */
export async function logIn(person: BrowserContext, origin: string, name: string): Promise<Page> {
  const page = await person.newPage();
  await page.goto(origin);
  await page.locator("#log-in").click();
  await enterPassword(page, origin, name);
  return page;
}

export async function enterPassword(page: Page, origin: string, name: string): Promise<void> {
  await page.locator("input[name=username]").fill(name);
  await page.locator("input[name=password]").fill(`${name}-demo`);
  const isHome = (url: string) => new URL(url).pathname === "/" && url.startsWith(origin);
  const landing = page.waitForRequest((request) => request.isNavigationRequest() && isHome(request.url()));
  await page.locator("button[type=submit]").click();
  // The cookie is SameSite=Strict: after the provider's redirect it is sent only because a page of ours comes in between.
  expect((await (await landing).allHeaders()).cookie).toMatch(/(^|; )todoke=tds_/);
  await page.locator("#log-out").waitFor();
}

/** Answers whether to end the provider's own session, if it asks: ours has ended, and with it the provider's may have. */
export async function confirmLogout(page: Page): Promise<void> {
  await page.locator(`#log-in, ${confirmation}`).first().waitFor();
  if ((await page.locator("#log-in").count()) === 0) await page.locator(confirmation).first().click();
}
