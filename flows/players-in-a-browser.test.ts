import type { BrowserContext, Page, Route } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findBrowser, type OpenBrowser, openBrowser } from "./browser.ts";
import { type LocalSetup, startLocalSetup } from "./local-setup.ts";

const executable = await findBrowser();
const inBrowser = test.skipIf(!executable);

let setup: LocalSetup;
let browser: OpenBrowser;

beforeAll(async () => {
  if (!executable) return;
  // All of them come from one address, one log-in right after the other.
  setup = await startLocalSetup({ GATEWAY_BFF_LIMIT_LOGIN: "1000/60s" });
  browser = await openBrowser(executable);
}, 240_000);

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  await setup?.[Symbol.asyncDispose]();
});

async function logIn(person: BrowserContext, name: string): Promise<Page> {
  const page = await person.newPage();
  await page.goto(setup.origin);
  await page.locator("#log-in").click();
  await page.locator("input[name=username]").fill(name);
  await page.locator("input[name=password]").fill(`${name}-demo`);
  const isHome = (url: string) => new URL(url).pathname === "/" && url.startsWith(setup.origin);
  const landing = page.waitForRequest((request) => request.isNavigationRequest() && isHome(request.url()));
  await page.locator("button[type=submit]").click();
  // The cookie is Strict, and the journey came from another site: without a page of ours in between it would not be sent.
  expect((await (await landing).allHeaders()).cookie).toMatch(/(^|; )todoke=tds_/);
  await page.locator("#log-out").waitFor();
  return page;
}

interface Answered {
  readonly status: number;
  /** Of whatever was asked: what the tests look at. */
  readonly body: {
    readonly user_id: string;
    readonly display_name?: string;
    readonly code?: string;
    readonly account: { readonly value: { readonly user_id: string } };
    readonly info: { readonly title: string };
  };
}

/** As the page's own scripts ask. */
const ask = (page: Page, path: string, options: { method?: string; body?: unknown; key?: string } = {}) =>
  page.evaluate(
    async ([url, { method, body, key }]) => {
      const answer = await fetch(url, {
        method: method ?? "GET",
        headers: {
          "x-todoke-request": "1",
          ...(body !== undefined && { "content-type": "application/json" }),
          ...(key !== undefined && { "idempotency-key": key }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { status: answer.status, body: await answer.json().catch(() => undefined) };
    },
    [path, options] as const,
  ) as Promise<Answered>;

/** Lets the next look at a ticket be answered, and keeps the answer from the page until it is to be delivered. */
async function holdFirstLook(page: Page) {
  const [answered, delivery] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const hold = async (route: Route) => {
    const response = await route.fetch();
    answered.resolve();
    await delivery.promise;
    await route.fulfill({ response });
  };
  await page.route("**/v1/matchmaking/tickets/*", hold, { times: 1 });
  return {
    answered: answered.promise,
    async deliver() {
      const delivered = page.waitForResponse((response) => response.url().includes("/v1/matchmaking/tickets/"));
      delivery.resolve();
      await (await delivered).finished();
      await ask(page, "/v1/me"); // The page has dealt with it when it hears the next answer.
    },
  };
}

inBrowser("log in, see one's own profile, log out: the cookie is dead", async () => {
  const person = await browser.person();
  const page = await logIn(person, "alice");
  const me = await ask(page, "/v1/me");
  expect(me.status).toBe(200);
  expect(await page.locator("#name").textContent()).toBe(me.body.display_name);
  await page.locator("#profile", { hasText: '"account"' }).waitFor();
  const cookies = await person.cookies(setup.origin);

  await page.locator("#log-out").click();
  // The provider asks whether to end its own session too; ours has ended.
  await page.locator("button[name=logout], button[type=submit]").first().click();
  await page.locator("#log-in").waitFor();

  expect((await ask(page, "/v1/me")).status).toBe(401);
  await person.addCookies(cookies);
  expect((await ask(page, "/v1/me")).status).toBe(401);
  await person.close();
});

inBrowser("nothing that the provider issued reaches the browser", async () => {
  const person = await browser.person();
  const page = await logIn(person, "alice");
  const kept = await page.evaluate("JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }])");
  expect(kept).toBe('["",{},{}]');
  const values = (await person.cookies(setup.origin)).map(({ value, httpOnly, sameSite }) => ({
    value,
    httpOnly,
    sameSite,
  }));
  expect(values.every(({ httpOnly }) => httpOnly)).toBe(true);
  expect(values.some(({ value }) => value.startsWith("eyJ"))).toBe(false);
  await person.close();
});

inBrowser("two players at once: each sees only their own", async () => {
  const [first, second] = [await browser.person(), await browser.person("ja-JP")];
  const [alice, bob] = [await logIn(first, "alice"), await logIn(second, "bob")];
  const [a, b] = [(await ask(alice, "/v1/me")).body, (await ask(bob, "/v1/me")).body];
  expect(a.user_id).not.toBe(b.user_id);
  for (const [page, own, other] of [
    [alice, a, b],
    [bob, b, a],
  ] as const) {
    expect((await ask(page, `/v1/users/${own.user_id}/profile`)).body.account.value.user_id).toBe(own.user_id);
    expect((await ask(page, `/v1/users/${other.user_id}`)).status).toBe(403);
    expect((await ask(page, `/v1/users/${other.user_id}/profile`)).status).toBe(403);
  }
  expect(await bob.locator("#log-out").textContent()).toBe("ログアウト");
  await Promise.all([first.close(), second.close()]);
});

inBrowser(
  "an admin suspends a player in the middle: the next request is refused, and after the reinstatement a new log-in works",
  async () => {
    const [player, staff] = [await browser.person(), await browser.person()];
    const [bob, admin] = [await logIn(player, "bob"), await logIn(staff, "admin")];
    const { user_id } = (await ask(bob, "/v1/me")).body;

    const act = (what: string, key: string) =>
      ask(admin, `/v1/admin/users/${user_id}:${what}`, { method: "POST", key, body: { reason: "seen in a browser" } });
    expect((await act("suspend", "browser-suspend")).status).toBe(200);
    const refused = await ask(bob, "/v1/me");
    expect([401, 403]).toContain(refused.status);

    // Whoever logs in while suspended is told so, and can do nothing else.
    await bob.goto(setup.origin);
    await bob.locator("#log-in").click();
    await bob.locator("#inactive, input[name=username]").first().waitFor();
    if (await bob.locator("input[name=username]").count()) {
      await bob.locator("input[name=username]").fill("bob");
      await bob.locator("input[name=password]").fill("bob-demo");
      await bob.locator("button[type=submit]").click();
    }
    await bob.locator("#inactive").waitFor();
    expect(await ask(bob, "/v1/me")).toMatchObject({ status: 403, body: { code: "ACCOUNT_INACTIVE" } });
    expect((await ask(bob, `/v1/users/${user_id}/profile`)).status).toBe(403);

    expect((await act("reinstate", "browser-reinstate")).status).toBe(200);
    expect((await ask(bob, "/v1/me")).status).toBe(200);
    await Promise.all([player.close(), staff.close()]);
  },
);

inBrowser(
  "two players find each other from the page: both are shown the same match, live, and one who waits alone cancels",
  async () => {
    const [first, second] = [await browser.person(), await browser.person("ja-JP")];
    const [alice, bob] = [await logIn(first, "alice"), await logIn(second, "bob")];
    const late = await holdFirstLook(alice);
    await alice.locator("#find-match").click();
    await late.answered;
    await alice.locator("#cancel-match").click();
    await alice.locator("#ticket", { hasText: "Cancelled." }).waitFor();
    // The page looks once it has the ticket. That answer comes after the cancel: what is over does not wait again.
    await late.deliver();
    expect(await alice.locator("#ticket").textContent()).toContain("Cancelled.");
    for (const page of [alice, bob]) await page.locator("#find-match").click();
    const shown = await Promise.all([alice, bob].map((page) => page.locator("#ticket code").textContent()));
    expect(shown[0]).toMatch(/^[0-9a-f-]{36}$/);
    expect(shown[1]).toBe(shown[0]);
    expect(await bob.locator("#ticket").textContent()).toContain("マッチが成立しました");
    await Promise.all([first.close(), second.close()]);
  },
);

inBrowser(
  "points that a back-end gives and takes are on the page the moment they are told, to the last one, and when they run out",
  async () => {
    const person = await browser.person();
    const page = await logIn(person, "alice");
    const { user_id } = (await ask(page, "/v1/me")).body;
    const change = async (how: "add" | "sub", more: object) => {
      const answer = await fetch(`${setup.urlOf("points")}/point/${how}`, {
        method: "PUT",
        headers: {
          authorization: "Bearer tdk_dev",
          "content-type": "application/json",
          "idempotency-key": `browser-${how}`,
        },
        body: JSON.stringify({ user_id, ...more }),
      });
      expect(answer.status).toBe(200);
    };
    await page.locator("#balance", { hasText: /^Balance: 0$/ }).waitFor();
    const expires_at = new Date(Date.now() + 10 * 86_400_000).toISOString();
    await change("add", { point_amount: "9007199254740995", expires_at });
    await page.locator("#balance", { hasText: /^Balance: 9007199254740995$/ }).waitFor();
    await page.locator(".expiring", { hasText: /^Runs out on \d.*: 9007199254740995$/ }).waitFor();
    await change("sub", { point_amount: 2 });
    await page.locator("#balance", { hasText: /^Balance: 9007199254740993$/ }).waitFor();
    await page.reload();
    await page.locator("#profile", { hasText: '"balance": 9007199254740993' }).waitFor();
    await person.close();
  },
);

inBrowser("the page loads nothing from elsewhere, and one reference shows every service", async () => {
  const person = await browser.person();
  const page = await person.newPage();
  const asked = new Set<string>();
  page.on("request", (request) => asked.add(new URL(request.url()).origin));
  await page.goto(setup.origin);
  await page.locator("#log-in").waitFor();
  expect(await page.locator("tbody tr").count()).toBe(6);
  // On a busy machine one may answer too late for the page, and is shown so for a moment.
  const ready = async () => {
    await page.reload();
    return page.locator("td.ready").count();
  };
  await expect.poll(ready).toBe(6);
  await page.goto(`${setup.origin}/docs`);
  await page.getByText("Todoke gateway-bff").first().waitFor();
  expect([...asked]).toEqual([setup.origin]);
  for (const name of ["account", "entitlement", "notification", "matchmaking", "points"]) {
    expect((await ask(page, `/openapi/${name}.json`)).body.info.title).toBe(`Todoke ${name}`);
  }
  await person.close();
});
