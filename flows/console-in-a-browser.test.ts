/** The console as an operator uses it, in Chromium, on everything that `npm start` starts. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findBrowser, type OpenBrowser, openBrowser } from "./browser.ts";
import { type ConsoleSetup, openConsole, startConsoleSetup } from "./console.ts";

const executable = await findBrowser();
const inBrowser = test.skipIf(!executable);

let running: ConsoleSetup;
let browser: OpenBrowser;
let alice: string;
/** One session for each role. */
const staff: Record<string, { person: BrowserContext; page: Page }> = {};

const hostile = "</script><img src=x onerror=\"document.title='hacked'\">";
const largest = "9223372036854775807";

beforeAll(async () => {
  if (!executable) return;
  running = await startConsoleSetup();
  alice = running.alice;
  browser = await openBrowser(executable);
  for (const name of ["admin", "olive", "vera"]) staff[name] = await logInAs(name);
  const { call } = running;
  await call("entitlement", "POST", "/v1/entitlements/grants", {
    user_id: alice,
    stock_keeping_unit: "starter-pack",
    reason: "purchase",
    purchase_id: hostile,
  });
  await call("points", "PUT", "/point/add", { user_id: alice, point_amount: largest, reason: hostile });
  await call("points", "POST", "/point/reserve", {
    user_id: alice,
    point_amount: 500,
    execute_at: "2099-01-01T00:00:00Z",
  });
}, 240_000);

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  await running?.[Symbol.asyncDispose]();
});

async function logInAs(name: string, language?: string) {
  const person = await browser.person(language);
  await collectViolations(person);
  return { person, page: await openConsole(person, running.setup.origin, name) };
}

/** Violations of the content security policy, by page, since it was loaded. */
const collectViolations = (person: BrowserContext) =>
  person.addInitScript(`
    globalThis.violations = [];
    document.addEventListener("securitypolicyviolation", (event) =>
      violations.push(event.violatedDirective + " " + event.blockedURI + " " + event.sourceFile));
  `);
const violations = (page: Page) => page.evaluate("globalThis.violations") as Promise<string[]>;

function pageOf(name: string): Page {
  const found = staff[name];
  if (!found) throw new Error(`${name} is not logged in`);
  return found.page;
}

async function open(page: Page, path: string): Promise<void> {
  await page.goto(`${running.setup.origin}/console${path}`);
  await page.locator(".page-title h1").waitFor();
  await settled(page);
}

/** Nothing is being loaded on the page. */
const settled = (page: Page) => expect.poll(() => page.locator(".skeleton").count()).toBe(0);

/** What is visible is read again when changes are followed again. */
async function readAgain(page: Page): Promise<void> {
  for (const _ of ["pause", "resume"]) await page.locator("button.live").click();
}

async function confirm(page: Page, reason: string, button: string): Promise<void> {
  await page.locator("dialog #reason").fill(reason);
  await page.locator("dialog").getByRole("button", { name: button, exact: true }).click();
  await page.locator("dialog").waitFor({ state: "detached" });
}

/** Calls the API with the session of a page. */
const callAs = (page: Page, method: string, path: string, body?: object) =>
  page.evaluate(
    async ([verb, url, sent]) => {
      const response = await fetch(url, {
        method: verb,
        headers: {
          "x-todoke-request": "1",
          "content-type": "application/json",
          "idempotency-key": crypto.randomUUID(),
        },
        ...(sent && { body: JSON.stringify(sent) }),
      });
      return { status: response.status, body: await response.json().catch(() => undefined) };
    },
    [method, path, body] as const,
  ) as Promise<{ status: number; body: { readonly history?: readonly unknown[] } }>;

inBrowser("an operator finds out why a player got nothing, and redrives it, in six clicks at the most", async () => {
  const page = pageOf("olive");
  let clicks = 0;
  const click = async (name: string | RegExp, role: "button" | "link" = "button") => {
    clicks++;
    await page.getByRole(role, { name }).first().click();
  };
  await open(page, "");
  await click("Search an ID, e-mail or name");
  await page.keyboard.type("alice@example.com");
  await page.keyboard.press("Enter");
  await page.locator("h1", { hasText: "Alice Example" }).waitFor();
  await click("Inbox", "link");
  await click(/You can now use starter-pack/, "link");
  await page.locator(".sentence.dead", { hasText: "the receiver answered 410 Gone" }).waitFor();
  running.receiver.repair();
  await click("Redrive");
  clicks++;
  await confirm(page, "the receiver works again", "Redrive");
  await page.locator(".sentence.done").waitFor();
  await page.locator(".timeline .tag.good", { hasText: "SENT" }).first().waitFor();
  expect(clicks).toBeLessThanOrEqual(6);
  running.receiver.breakAgain();

  await open(page, "/audit");
  const row = page.locator("tbody tr", { hasText: "redriveDeadLetters" }).first();
  expect(await row.textContent()).toContain("the receiver works again");
});

inBrowser("two operators redrive the same dead letter, and it is redriven once", async () => {
  const [first, second] = [pageOf("olive"), pageOf("admin")];
  for (const page of [first, second]) {
    await open(page, "/dead/notification/notifications?event_type=PointsGranted");
    await page.locator("tbody input[type=checkbox]").first().check();
    await page.getByRole("button", { name: "Redrive", exact: true }).click();
    await page.locator("dialog #reason").fill("both at once");
  }
  running.receiver.repair();
  for (const page of [first, second]) await confirm(page, "both at once", "Redrive");
  await first.locator(".toasts", { hasText: "1 redriven." }).waitFor();
  await second.locator(".toasts", { hasText: "0 redriven. 1 were no longer dead." }).waitFor();
  running.receiver.breakAgain();
});

inBrowser(
  "all dead letters that match a filter are redriven as a batch, after a count, with its progress",
  async () => {
    const page = pageOf("olive");
    for (const sku of ["a", "b", "c"])
      await running.call("entitlement", "POST", "/v1/entitlements/grants", {
        user_id: "u_batch",
        stock_keeping_unit: sku,
        reason: "purchase",
        purchase_id: sku,
      });
    const rows = async () => {
      await open(page, "/dead/notification/notifications?user_id=u_batch");
      return page.locator("tbody tr").count();
    };
    await expect.poll(rows).toBe(3);
    running.receiver.repair();
    await page.getByRole("button", { name: "Redrive all that match …" }).click();
    await page.locator("dialog", { hasText: "3 dead letters at this moment" }).waitFor();
    expect(await page.locator("dialog").textContent()).toContain("user_id = u_batch");
    await confirm(page, "all of them", "Redrive");
    await page.locator("main h2", { hasText: "Done" }).waitFor();
    expect(await page.locator("main").textContent()).toContain("3 of 3");
    await open(page, "/dead/notification/notifications?user_id=u_batch");
    await page.getByText("Nothing matches the filter.").waitFor();
    running.receiver.breakAgain();
  },
);

inBrowser("a suspension, a grant and points need a reason, take effect and are in the audit log", async () => {
  const page = pageOf("admin");
  await open(page, `/players/${alice}`);
  await page.getByRole("button", { name: "Suspend" }).click();
  expect(await page.locator("dialog").getByRole("button", { name: "Suspend" }).isDisabled()).toBe(true);
  await confirm(page, hostile, "Suspend");
  await page.locator(".facts .tag", { hasText: "SUSPENDED" }).waitFor();
  await page.getByRole("button", { name: "Reinstate" }).click();
  await confirm(page, "a mistake", "Reinstate");
  await page.locator(".facts .tag", { hasText: "ACTIVE" }).waitFor();

  await open(page, `/players/${alice}/entitlements`);
  await page.getByRole("button", { name: "Grant" }).click();
  await page.locator("dialog input[name=sku]").fill("sorry-gift");
  await confirm(page, "compensation", "Grant");
  await page.locator("tbody tr", { hasText: "sorry-gift" }).locator(".tag.good").waitFor();
  await page.locator("tbody tr", { hasText: "sorry-gift" }).getByRole("button", { name: "Revoke" }).click();
  await confirm(page, "too much", "Revoke");
  await page.locator("tbody tr", { hasText: "sorry-gift" }).locator(".tag.bad").waitFor();

  await open(page, `/players/${alice}/points`);
  await page.getByText("9,223,372,036,854,775,807").first().waitFor();
  await page.getByRole("button", { name: "Adjust points" }).click();
  await page.locator("dialog select[name=direction]").selectOption("spend");
  await page.locator("dialog input[name=amount]").fill("9007199254740993");
  await confirm(page, "exact to the last one", "Adjust points");
  await page.getByText("9,214,364,837,600,034,814").first().waitFor();

  await open(page, "/audit");
  for (const act of ["suspendUser", "reinstateUser", "grantEntitlementAsStaff", "adjustPoints"])
    await page.locator("tbody tr", { hasText: act }).first().waitFor();
  expect(await page.title()).toBe("Audit log · Todoke console");
});

inBrowser("an act is undone from the audit log, as an act of its own", async () => {
  const page = pageOf("admin");
  await open(page, "/audit");
  await page.locator("tbody tr", { hasText: "adjustPoints" }).first().getByRole("button", { name: "Undo" }).click();
  await confirm(page, "never mind", "Undo");
  await page.locator("tbody tr", { hasText: "undone" }).first().waitFor();
  await open(page, `/players/${alice}/points`);
  await page.getByText("9,223,372,036,854,775,807").first().waitFor();
});

inBrowser("a viewer sees everything, has no button to act, and is refused by the services without one", async () => {
  const page = pageOf("vera");
  const acts = /^(Suspend|Reinstate|Redrive|Discard|Grant|Revoke|Adjust points|End|Undo|Halt trading|Change role)/;
  for (const path of [
    `/players/${alice}`,
    `/players/${alice}/inbox`,
    `/players/${alice}/entitlements`,
    "/orders",
    "/audit",
  ]) {
    await open(page, path);
    expect(await page.getByRole("button", { name: acts }).count(), path).toBe(0);
  }
  await open(page, "/dead/notification/notifications");
  expect(await page.locator("main input[type=checkbox]").count()).toBe(0);
  expect(await page.getByRole("link", { name: "API keys" }).count()).toBe(0);
  const reason = "as a viewer";
  for (const [method, path, body] of [
    ["POST", `/v1/admin/users/${alice}:suspend`, { reason }],
    ["POST", `/v1/admin/users/${alice}/entitlement-grants`, { reason, stock_keeping_unit: "hat" }],
    ["POST", `/v1/admin/users/${alice}/point-adjustments`, { reason, direction: "add", point_amount: 1 }],
    ["POST", "/v1/admin/services/notification/dead-letters/notifications:redrive", { reason, ids: ["1"] }],
    ["POST", `/v1/admin/users/${alice}/sessions:end`, { reason }],
    ["PUT", "/v1/orders/trading-state", { reason, mode: "halt" }],
  ] as const)
    expect((await callAs(page, method, path, body)).status, path).toBe(403);
});

inBrowser("an operator cannot change roles or see keys, and a player sees no console", async () => {
  const page = pageOf("olive");
  await open(page, `/players/${alice}`);
  expect(await page.getByRole("button", { name: "Suspend" }).count()).toBe(1);
  expect(await page.getByRole("button", { name: "Change role" }).count()).toBe(0);
  const role = { role: "ADMIN", reason: "as an operator" };
  expect((await callAs(page, "POST", `/v1/admin/users/${alice}:grant-role`, role)).status).toBe(403);

  const player = await browser.person();
  const outside = await player.newPage();
  await outside.goto(`${running.setup.origin}/console/dead`);
  await outside.locator("input[name=username]").fill("bob");
  await outside.locator("input[name=password]").fill("bob-demo");
  await outside.locator("button[type=submit]").click();
  await outside.getByText("this account has no role for the console").waitFor();
  expect(new URL(outside.url()).pathname).toBe("/console/dead");
  expect(await outside.locator("nav").count()).toBe(0);
  expect((await callAs(outside, "GET", "/v1/admin/dead-letters/groups")).status).toBe(403);
  await player.close();
});

inBrowser("filters are in the address: Back, a reload and a shared link show the same rows", async () => {
  const page = pageOf("olive");
  await open(page, "/dead/notification/notifications");
  await page.getByLabel("Event type").fill("NothingLikeThis");
  await page.keyboard.press("Enter");
  await page.getByText("Nothing matches the filter.").waitFor();
  expect(new URL(page.url()).search).toBe("?event_type=NothingLikeThis");
  await page.reload();
  await page.getByText("Nothing matches the filter.").waitFor();
  await page.goBack();
  await page.locator("tbody input[type=checkbox]").first().waitFor();
  expect(await page.getByLabel("Event type").inputValue()).toBe("");
});

inBrowser("a lost connection keeps the rows and says so, and an act is repeated under its key", async () => {
  const page = pageOf("admin");
  await open(page, `/players/${alice}/entitlements`);
  await page.getByRole("button", { name: "Grant" }).click();
  await page.locator("dialog input[name=sku]").fill("once");
  await page.locator("dialog #reason").fill("lost answer");
  const keys: (string | undefined)[] = [];
  await page.route("**/entitlement-grants", async (route) => {
    keys.push(route.request().headers()["idempotency-key"]);
    // The first takes effect, and its answer is lost.
    if (keys.length === 1) {
      await route.fetch();
      await route.abort();
    } else await route.continue();
  });
  const button = page.locator("dialog").getByRole("button", { name: "Grant" });
  await button.click();
  await page.locator("dialog .banner", { hasText: "may or may not have taken effect" }).waitFor();
  await button.click();
  await page.locator("dialog").waitFor({ state: "detached" });
  expect(keys[0]).toBe(keys[1]);
  await page.unroute("**/entitlement-grants");
  const once = page.locator("tbody tr", { hasText: "once" });
  await once.waitFor();
  const history = await callAs(page, "GET", `/v1/users/${alice}/entitlements/once/history`);
  expect(history.body.history).toHaveLength(1);

  await page.route("**/v1/users/*/entitlements*", (route) => route.abort());
  await readAgain(page);
  await page.locator(".banner", { hasText: "The gateway does not answer." }).first().waitFor();
  expect(await once.count()).toBe(1);
  await page.unroute("**/v1/users/*/entitlements*");
  await readAgain(page);
  await expect.poll(() => page.locator(".banner").count()).toBe(0);
});

inBrowser(
  "an admin creates a key that only the browser has seen, after a lost answer too, and revokes it",
  async () => {
    const page = pageOf("admin");
    const sent: string[] = [];
    await open(page, "/keys");
    await page.getByRole("button", { name: "New key" }).click();
    await page.locator("dialog input[name=holder]").fill("arena-shop");
    for (const name of ["entitlement", "points", "read"])
      await page.locator("dialog").getByLabel(name, { exact: true }).check();
    await page.locator("dialog #reason").fill("a new shop");
    await page.route("**/v1/admin/keys", async (route) => {
      sent.push(`${route.request().headers()["idempotency-key"]} ${route.request().postData()}`);
      // The first takes effect, and its answer is lost.
      if (sent.length > 1) return route.continue();
      await route.fetch();
      await route.abort();
    });
    const create = page.locator("dialog").getByRole("button", { name: "Create" });
    await create.click();
    await page.locator("dialog .banner", { hasText: "may or may not have taken effect" }).waitFor();
    await create.click();
    const secret = (await page.locator("dialog .secret code").textContent()) ?? "";
    await page.unroute("**/v1/admin/keys");
    expect(secret).toMatch(/^tdk_[\w-]{43}$/);
    expect(sent[0]).toBe(sent[1]);
    expect(sent[0]).not.toContain(secret);
    if (process.env.TODOKE_CONSOLE_PICTURES) await page.screenshot({ path: `${pictures}new-key.png` });
    await page.getByRole("button", { name: "I have saved it" }).click();

    const read = async () => {
      const url = `${running.setup.serviceUrl("entitlement")}/v1/users/${alice}/entitlements`;
      return (await fetch(url, { headers: { authorization: `Bearer ${secret}` } })).status;
    };
    expect(await read()).toBe(200);
    const row = page.locator("tbody tr", { hasText: "arena-shop" });
    expect(await row.textContent()).toContain("entitlement, points");
    expect(await page.content()).not.toContain(secret);
    await row.getByRole("button", { name: "Revoke" }).click();
    await confirm(page, "the shop is closed", "Revoke");
    await expect.poll(() => row.count()).toBe(0);
    await expect.poll(read).toBe(401);
    await open(page, "/audit");
    await page.locator("tbody tr", { hasText: "revokeServiceKey" }).first().waitFor();
  },
);

inBrowser("what a colleague changes is seen at once; without the stream the page polls, and says so", async () => {
  const [page, other] = [pageOf("olive"), pageOf("admin")];
  const state = (text: string) => page.locator("button.live", { hasText: text }).waitFor();
  const grant = (sku: string) =>
    callAs(other, "POST", `/v1/admin/users/${alice}/entitlement-grants`, { reason: "live", stock_keeping_unit: sku });
  // A window of another person is in front: it has a stream of its own.
  await open(other, "/dead");
  await other.locator("button.live", { hasText: "Live" }).waitFor();
  await open(page, `/players/${alice}/entitlements`);
  await state("Live");
  expect((await grant("seen-at-once")).status).toBe(201);
  await page.locator("tbody tr", { hasText: "seen-at-once" }).waitFor();

  await page.route("**/v1/admin/stream*", (route) => route.abort());
  await page.reload();
  await state("Reconnecting");
  await grant("seen-by-a-poll");
  await page.locator("tbody tr", { hasText: "seen-by-a-poll" }).waitFor();
  await page.unroute("**/v1/admin/stream*");
  await state("Live");
});

inBrowser("an old login is renewed in a new tab, and the dialogue keeps what was typed", async () => {
  const page = pageOf("olive");
  await open(page, `/players/${alice}`);
  const refused = {
    status: 403,
    contentType: "application/problem+json",
    body: '{"code":"reauthentication-required"}',
  };
  await page.route("**/v1/admin/users/*", (route) => route.fulfill(refused), { times: 1 });
  await page.getByRole("button", { name: "Suspend" }).click();
  await page.locator("dialog #reason").fill("kept");
  await page.locator("dialog").getByRole("button", { name: "Suspend" }).click();
  const link = page.locator("dialog a", { hasText: "Log in again" });
  await link.waitFor();
  expect(await link.getAttribute("href")).toBe("/login?reauthenticate=yes&returnTo=%2Fconsole%2Flogged-in");
  expect(await page.locator("dialog #reason").inputValue()).toBe("kept");
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "detached" });
});

inBrowser("the keyboard is enough: palette, pages, rows and selection", async () => {
  const page = pageOf("olive");
  await open(page, "");
  await page.keyboard.press("g");
  await page.keyboard.press("d");
  await page.locator("h1", { hasText: "Dead letters" }).waitFor();
  await page.locator("tbody tr").first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.locator("h1", { hasText: "notification · notifications" }).waitFor();
  // The batches below have a table too, and may be there first.
  await page.getByRole("table", { name: "Dead letters" }).locator("tbody tr").first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.getByText("1 selected").waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("audit");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.locator("h1", { hasText: "Audit log" }).waitFor();
});

interface FirstRows {
  readonly dead_letters?: readonly { readonly id: string }[];
  readonly batches?: readonly { readonly batch_id: string }[];
}

inBrowser("a viewer simulates the rules of a mode: a chart, and a table that says the same", async () => {
  const page = pageOf("vera");
  await open(page, "/matchmaking");
  await page.locator("select[name=mode]").selectOption("ranked");
  await page.locator("input[name=players]").fill("400");
  await page.getByRole("button", { name: "Simulate" }).click();
  const charts = page.locator(".chart canvas");
  await charts.nth(1).waitFor();
  await page.locator(".chart summary").first().click();
  const counts = await page.locator(".chart").first().locator("tbody td.end").allTextContents();
  const matched = await page.locator(".simulator dd").first().textContent();
  expect(Number(matched?.split(" ")[0])).toBe(counts.reduce((sum, count) => sum + Number(count), 0));
  // What was simulated is in the address.
  await page.reload();
  await charts.nth(1).waitFor();
  expect(await page.locator("input[name=players]").inputValue()).toBe("400");
  expect(await violations(page)).toEqual([]);
});

inBrowser("points that are due next, schedules and the last audit are on the page of points", async () => {
  const page = pageOf("vera");
  await open(page, "/points");
  const panel = (name: string) => page.locator("section.panel", { hasText: name });
  await panel("Due next").locator("tbody tr", { hasText: "500" }).waitFor();
  await panel("Late reservations").getByText("Nothing is late.").waitFor();
  await panel("Last audit").getByText("It has not been audited yet.").waitFor();
});

inBrowser("trading is halted at once, and resumed only when its scope is typed", async () => {
  const page = pageOf("olive");
  await open(page, "/orders");
  await page.getByRole("button", { name: "Halt trading" }).click();
  await confirm(page, "the market is mad", "Halt trading");
  await page.locator("tbody tr", { hasText: "the market is mad" }).locator(".tag.bad").waitFor();
  await page.getByRole("button", { name: "Resume trading" }).click();
  await page.locator("dialog #reason").fill("it is calm");
  const resume = page.locator("dialog").getByRole("button", { name: "Resume trading" });
  expect(await resume.isDisabled()).toBe(true);
  await page.locator("dialog input").first().fill("all instruments");
  await resume.click();
  await page.locator("dialog").waitFor({ state: "detached" });
  await page.locator("tbody tr", { hasText: "it is calm" }).locator(".tag.good").waitFor();
});

interface Found {
  readonly entries: readonly { readonly kind: string; readonly id: string; readonly trace_id: string | null }[];
}

inBrowser("every kind of ID that an operator may have leads to what happened", async () => {
  const { call } = running;
  const order = {
    idempotency_key: "kinds-key",
    order_id: "kinds-order",
    instrument: "BTC-USD",
    side: "BUY",
    qty: "0.1",
  };
  await call(
    "orders",
    "POST",
    "/do/order",
    { ...order, price: null, requested_at: new Date().toISOString() },
    "kinds-key",
  );
  for (const user of ["u_kind_1", "u_kind_2"])
    await call("matchmaking", "POST", `/v1/matchmaking/users/${user}/queues/duel/tickets`, {});
  const page = pageOf("vera");
  const find = async (id: string) =>
    ((await callAs(page, "GET", `/v1/admin/why/${encodeURIComponent(id)}`)).body as unknown as Found).entries;
  const ofAlice = await find(alice);
  await expect.poll(async () => (await find("u_kind_1")).map(({ kind }) => kind)).toContain("ticket");
  const idOf = (kind: string, entries = ofAlice) => entries.find((entry) => entry.kind === kind)?.id ?? "";
  const trace = ofAlice.find(({ kind, trace_id }) => kind === "event" && trace_id !== null)?.trace_id ?? "";
  const ticket = idOf("ticket", await find("u_kind_1"));
  await expect.poll(async () => (await find(ticket)).map(({ kind }) => kind)).toContain("match");
  const ids = {
    user: alice,
    "e-mail": "alice@example.com",
    event: idOf("event"),
    notification: idOf("notification"),
    request: trace.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-"),
    trace,
    key: "kinds-key",
    order: "kinds-order",
    reservation: idOf("reservation"),
    ticket,
    match: idOf("match", await find(ticket)),
  };
  for (const [kind, id] of Object.entries(ids)) {
    expect(id, kind).not.toBe("");
    await open(page, `/why?id=${encodeURIComponent(id)}`);
    await page.locator(".timeline .tag").first().waitFor();
  }
});

/** Every page, and the name of its picture. */
async function pages(page: Page) {
  const first = async (rest: string) =>
    (await callAs(page, "GET", `/v1/admin/services/notification/${rest}`)).body as FirstRows;
  const { dead_letters: [letter] = [] } = await first("dead-letters/notifications");
  const { batches: [batch] = [] } = await first("dead-letter-batches");
  return [
    ["overview", ""],
    ["why", `/why?id=nobody-knows-this`],
    ["dead-letters", "/dead"],
    ["dead-letter-rows", "/dead/notification/notifications"],
    ["dead-letter", `/dead/notification/notifications/${letter?.id}`],
    ["dead-letter-batch", `/dead/notification/batches/${batch?.batch_id}`],
    ["players", "/players?q=alice%40example.com"],
    ["player", `/players/${alice}`],
    ["player-inbox", `/players/${alice}/inbox`],
    ["player-entitlements", `/players/${alice}/entitlements`],
    ["player-points", `/players/${alice}/points`],
    ["player-matches", `/players/${alice}/matches`],
    ["player-orders", `/players/${alice}/orders`],
    ["player-sessions", `/players/${alice}/sessions`],
    ["player-acts", `/players/${alice}/audit`],
    ["orders", "/orders"],
    ["points", "/points"],
    ["matchmaking", "/matchmaking?mode=ranked&players=2000"],
    ["audit-log", "/audit"],
    ["keys", "/keys?state=any"],
  ] as const;
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const pictures = fileURLToPath(new URL("../docs/guides/console/", import.meta.url));

interface AxeResults {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}

inBrowser.each([
  ["en-GB", "light"],
  ["ja-JP", "dark"],
] as const)(
  "every page in %s and %s is accessible, fits a phone and violates no policy",
  async (language, colorScheme) => {
    const { person, page } = await logInAs("admin", language);
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const found: string[] = [];
    for (const [name, path] of await pages(page)) {
      await page.setViewportSize({ width: 1280, height: 800 });
      await open(page, path);
      await page.evaluate(axeSource);
      const { violations: faults } = (await page.evaluate(
        `axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"] })`,
      )) as AxeResults;
      found.push(...faults.map(({ id, nodes }) => `${name}: ${id}: ${nodes[0]?.html}`));
      await page.locator("button.live.is-live").waitFor();
      // A chart comes with a chunk of its own.
      if (path.includes("players=")) await page.locator(".chart canvas").nth(1).waitFor();
      if (process.env.TODOKE_CONSOLE_PICTURES && language === "en-GB")
        await page.screenshot({ path: `${pictures}${name}.png`, fullPage: name === "matchmaking" });
      await page.setViewportSize({ width: 360, height: 740 });
      if (await page.evaluate("document.documentElement.scrollWidth > 360")) found.push(`${name}: wider than a phone`);
      found.push(...(await violations(page)).map((violation) => `${name}: ${violation}`));
      expect(await page.evaluate("document.documentElement.lang")).toBe(language.slice(0, 2));
    }
    expect(found).toEqual([]);
    expect(await page.title()).not.toContain("hacked");
    await person.close();
  },
);
