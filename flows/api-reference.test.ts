/** The API reference at /docs in a real browser: a player sends requests from it, under its content security policy. */
import { freePort } from "@todoke/kernel/testing";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { startAll } from "./all-services.ts";
import { findBrowser, openBrowser } from "./browser.ts";

const executable = await findBrowser();

interface Operation {
  readonly tag: string;
  readonly method: string;
  readonly path: string;
}

/** Opens an operation, sends its example, and returns the status of the response. */
async function sendFrom(page: Page, origin: string, { tag, method, path }: Operation): Promise<number> {
  const id = `tag/${tag}/${method}${path}`;
  await page.goto(`${origin}/docs/#${id}`);
  await page.reload();
  const section = page.locator(`[id$="${id}"]`).first();
  await section.getByRole("button", { name: /Test Request/ }).click();
  const response = page.waitForResponse((each) => each.url().startsWith(`${origin}${path.split("{")[0]}`));
  await page.getByRole("button", { name: /^Send/ }).last().click();
  return (await response).status();
}

test.skipIf(!executable)("a player who is logged in sends requests from the API reference", async () => {
  const port = await freePort();
  const origin = `http://localhost:${port}`;
  const settings = { GATEWAY_BFF_PORT: String(port), GATEWAY_BFF_ORIGIN: origin };
  await using all = await startAll({ settings });
  const session = await all.openSession(await all.createUser("alice"));
  await all.db.query("update gateway_bff.sessions set client = 'browser'");
  await using browser = await openBrowser(executable ?? "");
  const person = await browser.person();
  await person.addCookies([{ name: "todoke", value: session, url: origin }]);
  const page = await person.newPage();
  const errors: string[] = [];
  page.on("console", (message) => void (message.type() === "error" && errors.push(message.text())));

  expect(await sendFrom(page, origin, { tag: "account", method: "GET", path: "/v1/me" })).toBe(200);
  // A change needs the header that the page sends because the document requires it.
  const join = { tag: "tickets", method: "POST", path: "/v1/matchmaking/queues/{mode}/tickets" };
  expect(await sendFrom(page, origin, join)).toBe(201);
  expect(errors).toEqual([]);
});
