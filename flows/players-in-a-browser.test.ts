import type * as Client from "@todoke/client";
import { externalProvider } from "@todoke/identity/testing";
import type { BrowserContext, Page, Route } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findBrowser, type OpenBrowser, openBrowser } from "./browser.ts";
import { bundleClient } from "./client-bundle.ts";
import { type LocalSetup, loginSettings, startLocalSetup } from "./local-setup.ts";
import { confirmLogout, logIn as logInAt } from "./provider-pages.ts";

const executable = await findBrowser();
const inBrowser = test.skipIf(!executable);

let setup: LocalSetup;
let browser: OpenBrowser;

beforeAll(async () => {
  if (!executable) return;
  // All logins come from one address.
  const external = externalProvider();
  setup = await startLocalSetup({ GATEWAY_BFF_LIMIT_LOGIN: "1000/60s", ...(external && loginSettings(external)) });
  browser = await openBrowser(executable);
}, 240_000);

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  await setup?.[Symbol.asyncDispose]();
});

const logIn = (person: BrowserContext, name: string) => logInAt(person, setup.origin, name);

interface PageResponse {
  readonly status: number;
  /** The fields that the tests use. */
  readonly body: {
    readonly user_id: string;
    readonly display_name?: string;
    readonly code?: string;
    readonly account: { readonly value: { readonly user_id: string } };
    readonly info: { readonly title: string };
  };
}

/** Calls the API like the page's own scripts. */
const fetchInPage = (page: Page, path: string, options: { method?: string; body?: unknown; key?: string } = {}) =>
  page.evaluate(
    async ([url, { method, body, key }]) => {
      const response = await fetch(url, {
        method: method ?? "GET",
        headers: {
          "x-todoke-request": "1",
          ...(body !== undefined && { "content-type": "application/json" }),
          ...(key !== undefined && { "idempotency-key": key }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: await response.json().catch(() => undefined) };
    },
    [path, options] as const,
  ) as Promise<PageResponse>;

/** Fetches the next poll of a ticket, and delays its response to the page until `deliver`. */
async function delayFirstPoll(page: Page) {
  const [answered, delivery] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const hold = async (route: Route) => {
    const response = await route.fetch();
    answered.resolve();
    await delivery.promise;
    await route.fulfill({ response });
  };
  await page.route((url) => url.searchParams.has("ticket_id"), hold, { times: 1 });
  return {
    answered: answered.promise,
    async deliver() {
      const delivered = page.waitForResponse((response) => response.url().includes("ticket_id="));
      delivery.resolve();
      await (await delivered).finished();
      await fetchInPage(page, "/v1/me"); // When this response arrives, the page has processed the earlier one.
    },
  };
}

inBrowser("a player logs in, sees the profile and logs out; the cookie is invalid then", async () => {
  const person = await browser.person();
  const page = await logIn(person, "alice");
  const me = await fetchInPage(page, "/v1/me");
  expect(me.status).toBe(200);
  expect(await page.locator("#name").textContent()).toBe(me.body.display_name);
  await page.locator("#items", { hasText: /./ }).waitFor();
  const cookies = await person.cookies(setup.origin);

  await page.locator("#log-out").click();
  await confirmLogout(page);
  await page.locator("#log-in").waitFor();

  expect((await fetchInPage(page, "/v1/me")).status).toBe(401);
  await person.addCookies(cookies);
  expect((await fetchInPage(page, "/v1/me")).status).toBe(401);
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

inBrowser("two players at once see only their own data", async () => {
  const [first, second] = [await browser.person(), await browser.person("ja-JP")];
  const [alice, bob] = [await logIn(first, "alice"), await logIn(second, "bob")];
  const [a, b] = [(await fetchInPage(alice, "/v1/me")).body, (await fetchInPage(bob, "/v1/me")).body];
  expect(a.user_id).not.toBe(b.user_id);
  for (const [page, own, other] of [
    [alice, a, b],
    [bob, b, a],
  ] as const) {
    expect((await fetchInPage(page, `/v1/users/${own.user_id}/profile`)).body.account.value.user_id).toBe(own.user_id);
    expect((await fetchInPage(page, `/v1/users/${other.user_id}`)).status).toBe(403);
    expect((await fetchInPage(page, `/v1/users/${other.user_id}/profile`)).status).toBe(403);
  }
  expect(await bob.locator("#log-out").textContent()).toBe("ログアウト");
  await Promise.all([first.close(), second.close()]);
});

inBrowser("a suspended player is rejected at the next request and can log in after reinstatement", async () => {
  const [player, staff] = [await browser.person(), await browser.person()];
  const [bob, admin] = [await logIn(player, "bob"), await logIn(staff, "admin")];
  const { user_id } = (await fetchInPage(bob, "/v1/me")).body;

  const adminAction = (action: string, key: string) =>
    fetchInPage(admin, `/v1/admin/users/${user_id}:${action}`, {
      method: "POST",
      key,
      body: { reason: "seen in a browser" },
    });
  expect((await adminAction("suspend", "browser-suspend")).status).toBe(200);
  const refused = await fetchInPage(bob, "/v1/me");
  expect([401, 403]).toContain(refused.status);

  // A suspended player who logs in sees the reason and can do nothing else.
  await bob.goto(setup.origin);
  await bob.locator("#log-in").click();
  await bob.locator("#inactive, input[name=username]").first().waitFor();
  if (await bob.locator("input[name=username]").count()) {
    await bob.locator("input[name=username]").fill("bob");
    await bob.locator("input[name=password]").fill("bob-demo");
    await bob.locator("button[type=submit]").click();
  }
  await bob.locator("#inactive").waitFor();
  expect(await fetchInPage(bob, "/v1/me")).toMatchObject({ status: 403, body: { code: "ACCOUNT_INACTIVE" } });
  expect((await fetchInPage(bob, `/v1/users/${user_id}/profile`)).status).toBe(403);

  expect((await adminAction("reinstate", "browser-reinstate")).status).toBe(200);
  expect((await fetchInPage(bob, "/v1/me")).status).toBe(200);
  await Promise.all([player.close(), staff.close()]);
});

inBrowser("two players see the same match on the page, and a waiting player can cancel", async () => {
  const [first, second] = [await browser.person(), await browser.person("ja-JP")];
  const [alice, bob] = [await logIn(first, "alice"), await logIn(second, "bob")];
  const late = await delayFirstPoll(alice);
  await alice.locator("#find-match").click();
  await late.answered;
  await alice.locator("#cancel-match").click();
  await alice.locator("#ticket", { hasText: "Cancelled." }).waitFor();
  // A poll response that arrives after the cancel must not show the ticket as queued again.
  await late.deliver();
  expect(await alice.locator("#ticket").textContent()).toContain("Cancelled.");
  for (const page of [alice, bob]) await page.locator("#find-match").click();
  const shown = await Promise.all([alice, bob].map((page) => page.locator("#ticket code").textContent()));
  expect(shown[0]).toMatch(/^[0-9a-f-]{36}$/);
  expect(shown[1]).toBe(shown[0]);
  expect(await bob.locator("#ticket").textContent()).toContain("マッチが成立しました");
  // Each sees the other's name, also after a reload.
  const [a, b] = [(await fetchInPage(alice, "/v1/me")).body, (await fetchInPage(bob, "/v1/me")).body];
  await alice.reload();
  expect(await alice.locator("#opponents").textContent()).toBe(`against ${b.display_name}`);
  expect(await alice.locator("#ticket code").textContent()).toBe(shown[0]);
  expect(await bob.locator("#opponents").textContent()).toBe(`対戦相手 ${a.display_name}`);
  await Promise.all([first.close(), second.close()]);
});

inBrowser("a player who waits for a match still waits after a reload, and can cancel", async () => {
  const person = await browser.person();
  const page = await logIn(person, "alice");
  await page.locator("#find-match").click();
  await page.locator("#ticket", { hasText: "Waiting for others" }).waitFor();
  await page.reload();
  await page.locator("#ticket", { hasText: "Waiting for others" }).waitFor();
  await page.locator("#cancel-match").click();
  await page.locator("#ticket", { hasText: "Cancelled." }).waitFor();
  await person.close();
});

inBrowser("the page shows points, exact to the last one, and their expiry as soon as they change", async () => {
  const person = await browser.person();
  const page = await logIn(person, "alice");
  const { user_id } = (await fetchInPage(page, "/v1/me")).body;
  const change = async (how: "add" | "sub", more: object) => {
    const response = await fetch(`${setup.serviceUrl("points")}/point/${how}`, {
      method: "PUT",
      headers: {
        authorization: "Bearer tdk_dev",
        "content-type": "application/json",
        "idempotency-key": `browser-${how}`,
      },
      body: JSON.stringify({ user_id, ...more }),
    });
    expect(response.status).toBe(200);
  };
  await page.locator("#balance", { hasText: /^0 points$/ }).waitFor();
  const expires_at = new Date(Date.now() + 10 * 86_400_000).toISOString();
  await change("add", { point_amount: "9007199254740995", expires_at });
  await page.locator("#balance", { hasText: /^9,007,199,254,740,995 points$/ }).waitFor();
  await page.locator(".expiring", { hasText: /^Expires on \d.*: 9,007,199,254,740,995$/ }).waitFor();
  await change("sub", { point_amount: 2 });
  for (const _ of ["live", "reloaded"]) {
    await page.locator("#balance", { hasText: /^9,007,199,254,740,993 points$/ }).waitFor();
    await expect.poll(() => page.locator("#points-history li").count()).toBe(2);
    expect(await page.locator("#points-history li").first().textContent()).toMatch(/^Spent-2\D/);
    expect(await page.locator("#points-history li").last().textContent()).toContain("Added+9,007,199,254,740,995");
    await page.reload();
  }
  await person.close();
});

inBrowser(
  "the page shows what the player owns, and unread notifications, as they come and until they are read",
  async () => {
    await using person = await browser.person();
    const page = await logIn(person, "bob");
    const { user_id } = (await fetchInPage(page, "/v1/me")).body;
    await page.locator("#live", { hasText: "Live" }).waitFor();
    await page.locator("#inbox").waitFor();
    if (await page.locator("#mark-read").isVisible()) await page.locator("#mark-read").click();
    await page.locator("#unread", { hasText: /^$/ }).waitFor({ state: "attached" });

    const grant = { user_id, stock_keeping_unit: "fire-sword", reason: "purchase", purchase_id: "p_page" };
    const response = await fetch(`${setup.serviceUrl("entitlement")}/v1/entitlements/grants`, {
      method: "POST",
      headers: { authorization: "Bearer tdk_dev", "content-type": "application/json", "idempotency-key": "page-grant" },
      body: JSON.stringify(grant),
    });
    expect(response.status).toBe(201);
    for (const _ of ["live", "reloaded"]) {
      await page.locator("#items li", { hasText: /^fire-sword$/ }).waitFor();
      await page.locator("#unread", { hasText: /^Unread: 1$/ }).waitFor();
      expect(await page.locator("#inbox li.unread").count()).toBe(1);
      await page.reload();
    }
    await page.locator("#mark-read").click();
    await page.reload();
    await page.locator("#inbox li").first().waitFor();
    expect(await page.locator("#inbox li.unread").count()).toBe(0);
  },
);

inBrowser("a player sees the sessions, ends another one, and then all others", async () => {
  await using first = await browser.person();
  const page = await logIn(first, "alice");
  await fetchInPage(page, "/v1/sessions:revoke-others", { method: "POST" });
  const others = await Promise.all([browser.person(), browser.person(), browser.person()]);
  const pages = await Promise.all(others.map((other) => logIn(other, "alice")));
  await page.reload();
  await expect.poll(() => page.locator("#sessions li").count()).toBe(4);
  expect(await page.locator("#sessions .current").count()).toBe(1);
  await page.locator("#sessions button").first().click();
  await expect.poll(() => page.locator("#sessions li").count()).toBe(3);
  await page.locator("#end-others").click();
  await expect.poll(() => page.locator("#sessions li").count()).toBe(1);
  expect(await page.locator("#end-others").isVisible()).toBe(false);
  const statuses = await Promise.all(pages.map(async (other) => (await fetchInPage(other, "/v1/me")).status));
  expect(statuses).toEqual([401, 401, 401]);
  expect((await fetchInPage(page, "/v1/me")).status).toBe(200);
  await Promise.all(others.map((other) => other.close()));
});

inBrowser("the page fits a phone, in light and dark, and nothing violates its content security policy", async () => {
  await using person = await browser.person("ja-JP");
  await person.addInitScript(
    `globalThis.violations = []; document.addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));`,
  );
  const page = await logIn(person, "bob");
  await page.setViewportSize({ width: 360, height: 700 });
  await page.locator("#sessions li").first().waitFor();
  const backgrounds = new Set<unknown>();
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    backgrounds.add(await page.evaluate("getComputedStyle(document.documentElement).backgroundColor"));
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(360);
    if (process.env.SCREENSHOTS)
      await page.screenshot({ path: `${process.env.SCREENSHOTS}/${colorScheme}.png`, fullPage: true });
  }
  expect(backgrounds.size).toBe(2);
  expect(await page.evaluate("violations")).toEqual([]);
});

inBrowser("the page loads nothing from other origins, and one API reference shows every service", async () => {
  const person = await browser.person();
  const page = await person.newPage();
  const asked = new Set<string>();
  page.on("request", (request) => asked.add(new URL(request.url()).origin));
  await page.goto(setup.origin);
  await page.locator("#log-in").waitFor();
  await page.goto(`${setup.origin}/docs`);
  await page.getByText("All operations of").first().waitFor();
  expect([...asked]).toEqual([setup.origin]);
  for (const name of ["account", "entitlement", "notification", "matchmaking", "points"]) {
    expect((await fetchInPage(page, `/openapi/${name}.json`)).body.info.title).toBe(`Todoke ${name}`);
  }
  await person.close();
});

inBrowser("the client works in a page by its cookie: it reads, changes, and follows the inbox", async () => {
  await using person = await browser.person();
  const page = await logIn(person, "alice");
  await page.evaluate(await bundleClient());
  const result = await page.evaluate(async () => {
    const { createClient } = (globalThis as unknown as { todokeClient: typeof Client }).todokeClient;
    const { origin } = (globalThis as unknown as { location: { origin: string } }).location;
    const todoke = createClient({ gateway: origin });
    const { user_id } = await todoke.gateway.getMe();
    const { balance } = await todoke.points.getBalance({ user_id });
    const joined = await todoke.matchmaking.join("squad", { attributes: { skill: 1 } });
    const { last_event_id } = await todoke.inbox.list();
    const { ticket_id, status } = await todoke.matchmaking.cancelTicket({ ticket_id: joined.ticket_id });
    const leave = new AbortController();
    const states: string[] = [];
    const onState = (state: string) => {
      states.push(state);
      leave.abort();
    };
    for await (const _ of todoke.inbox.follow({ after: last_event_id, signal: leave.signal, onState })) break;
    return { type: typeof balance, isOwn: ticket_id === joined.ticket_id, status, states };
  });
  expect(result).toEqual({ type: "bigint", isOwn: true, status: "CANCELLED", states: ["live", "ended"] });
});
