/** The demo as two players and an operator use it, and the guide to the first ten minutes, on one `npm start -- --demo`. */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Db, openDb, transaction } from "@todoke/kernel/db";
import { freePort, until } from "@todoke/kernel/testing";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findBrowser, type OpenBrowser, openBrowser } from "./browser.ts";
import { openConsole } from "./console.ts";
import { type LocalSetup, startLocalSetup } from "./local-setup.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("..", import.meta.url));
const executable = await findBrowser();
const inBrowser = test.skipIf(!executable);

let setup: LocalSetup;
let browser: OpenBrowser;
let db: Db;
let databaseUrl: string;
let ports: Record<string, string>;

beforeAll(async () => {
  ports = { DEMO_PORT: String(await freePort()), OIDC_PROVIDER_PORT: String(await freePort()) };
  setup = await startLocalSetup(ports);
  db = await openDatabase();
  if (executable) browser = await openBrowser(executable);
}, 240_000);

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  await db?.end();
  await setup?.[Symbol.asyncDispose]();
});

async function openDatabase(): Promise<Db> {
  await db?.end().catch(() => {});
  ({ databaseUrl } = JSON.parse(readFileSync(join(setup.folder, ".todoke/dev.json"), "utf8")));
  return openDb({ url: databaseUrl, schema: "arena_shop", applicationName: "demo-test" });
}

async function logIn(person: BrowserContext, name: string): Promise<Page> {
  await person.addInitScript(
    `globalThis.violations = []; document.addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));`,
  );
  const page = await person.newPage();
  await page.goto(setup.origin);
  await page.locator("#log-in").click();
  await page.locator("input[name=username]").fill(name);
  await page.locator("input[name=password]").fill(`${name}-demo`);
  await page.locator("button[type=submit]").click();
  await page.locator("#live.live").waitFor();
  return page;
}

const balanceOf = async (page: Page) => Number(await page.locator("#balance").textContent());

/** Places of the ledger and the entitlements that are about the purchases of a user. */
async function readPurchases(userId: string) {
  const { rows } = await db.query(
    `select (select count(*)::int from points.point_transactions where user_id = $1 and kind = 'CAPTURE') as payments,
            (select count(*)::int from entitlement.entitlement_audit where user_id = $1) as grants,
            (select array_agg(state) from purchases where user_id = $1) as states`,
    [userId],
  );
  return rows[0];
}

/** Kills the shop's back-end in the middle of a purchase: its first call waits for our lock. */
async function killInPurchase(userId: string, buy: () => Promise<void>): Promise<void> {
  const [, pid] = /its back-end is process (\d+)/.exec(setup.output()) ?? [];
  await transaction(db, async (tx) => {
    await tx.query(`lock table points.point_holds in exclusive mode`);
    await buy();
    await until("the hold is waiting", async () => {
      const { rows } = await db.query(
        `select 1 from pg_locks where relation = 'points.point_holds'::regclass and not granted`,
      );
      return rows.length > 0;
    });
    process.kill(Number(pid), "SIGKILL");
    await until("the shop is gone", () => setup.output().includes("the arena shop was killed by SIGKILL"));
    expect(await readPurchases(userId)).toMatchObject({ payments: 0, grants: 0, states: ["NEW"] });
  });
}

inBrowser(
  "two players earn points, meet, and buy: paid once and granted once, with two clicks and a killed shop",
  async () => {
    await using first = await browser.person();
    await using second = await browser.person("ja-JP");
    const [alice, bob] = [await logIn(first, "alice"), await logIn(second, "bob")];
    await alice.locator("#bonus").click();
    await alice.locator("#balance", { hasText: /^100$/ }).waitFor();
    await alice.locator("#news .PointsGranted.new").waitFor();

    await alice.locator("#fight").click();
    await alice.locator("#cancel").waitFor();
    await alice.reload(); // She still waits.
    await alice.locator("#cancel").waitFor();
    await bob.locator("#fight").click();
    for (const page of [alice, bob]) {
      await page.locator("#result").waitFor();
      await page.locator("#news .MatchMade.new").waitFor();
    }
    expect(await bob.locator("#result code").textContent()).toBe(await alice.locator("#result code").textContent());
    expect(await bob.locator("#result").textContent()).toContain("Alice Example");
    await expect.poll(async () => (await balanceOf(alice)) + (await balanceOf(bob))).toBe(400);
    const before = await balanceOf(alice);

    const me = await alice.evaluate("fetch('/v1/me').then((response) => response.json())");
    const { user_id: userId } = me as { user_id: string };
    await killInPurchase(userId, () => alice.locator("#buy-ice-shield").dblclick());
    await alice.locator(".is-owned", { hasText: "Ice shield" }).waitFor();
    await alice.locator("#balance", { hasText: new RegExp(`^${before - 200}$`) }).waitFor();
    await alice.locator("#news .EntitlementGranted.new").waitFor();
    expect(await readPurchases(userId)).toEqual({ payments: 1, grants: 1, states: ["GRANTED"] });

    if (process.env.TODOKE_DEMO_PICTURES) {
      await alice.setViewportSize({ width: 1200, height: 760 });
      const folder = join(root, "docs/guides/first-ten-minutes");
      mkdirSync(folder, { recursive: true });
      await alice.screenshot({ path: join(folder, "arena-shop.png") });
    }
    for (const page of [alice, bob]) {
      await page.setViewportSize({ width: 360, height: 740 });
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(360);
      expect(await page.evaluate("violations")).toEqual([]);
    }
  },
);

inBrowser("the shop takes the cookie from pages of its own site only", async () => {
  await using person = await browser.person();
  const page = await logIn(person, "bob");
  const send = async (headers: Record<string, string>) =>
    (await person.request.post(`${setup.origin}/shop/bonus`, { headers })).status();
  const own = { "x-todoke-request": "1", "sec-fetch-site": "same-origin" };
  expect(await send({ "x-todoke-request": "1", "sec-fetch-site": "cross-site" })).toBe(401);
  expect(await send({ "sec-fetch-site": "same-origin" })).toBe(401);
  expect(await send(own)).toBe(200);
  // Two cookies of this name: one of them was planted.
  await person.addCookies([{ name: "todoke", value: "tds_planted", domain: "localhost", path: "/shop" }]);
  expect(await send(own)).toBe(401);
  await page.close();
});

inBrowser("the console has an order in doubt and two dead letters", async () => {
  await using person = await browser.person();
  const page = await openConsole(person, setup.origin, "olive", "/dead/notification/notifications");
  await expect.poll(() => page.locator("tbody tr").count()).toBe(2);
  await page.goto(`${setup.origin}/console/orders`);
  await page.locator("tbody tr", { hasText: "demo-in-doubt" }).first().waitFor();
});

/** Each command of the guide with the output that follows it. */
function readGuide(): readonly { readonly command: string; readonly output: string }[] {
  const text = readFileSync(join(root, "docs/guides/first-ten-minutes.md"), "utf8");
  const blocks = text.matchAll(/^```sh\n(.*?)^```\n\n```\n(.*?)^```$/gms);
  return [...blocks].map(([, command = "", output = ""]) => ({ command, output }));
}

test("the guide to the first ten minutes does what it says", async () => {
  const folder = join(setup.folder, "working-copy");
  mkdirSync(folder);
  for (const name of readdirSync(root).filter((each) => !each.startsWith(".")))
    symlinkSync(join(root, name), join(folder, name));
  const ports = { 8082: setup.serviceUrl("entitlement"), 8085: setup.serviceUrl("points") };
  const withAddresses = (text: string) =>
    Object.entries(ports).reduce((filled, [port, url]) => filled.replaceAll(`http://127.0.0.1:${port}`, url), text);
  const guide = readGuide();
  expect(guide).toHaveLength(5);
  for (const { command, output } of guide) {
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, DATABASE_URL: databaseUrl };
    const { stdout } = await run("bash", ["-e", "-c", withAddresses(command)], { cwd: folder, env });
    const lines = output.trimEnd().split("…").map(RegExp.escape);
    expect(stdout.trimEnd(), command).toMatch(new RegExp(`^${lines.join("[^]*")}$`));
  }
  rmSync(folder, { recursive: true });
});

const countAll = async () => {
  const { rows } = await db.query(
    `select (select count(*)::int from points.point_transactions) as transactions,
            (select count(*)::int from points.point_reservations) as reservations,
            (select count(*)::int from entitlement.entitlement_audit) as grants,
            (select count(*)::int from matchmaking.matches) as matches,
            (select count(*)::int from account.users) as users,
            (select count(*)::int from orders.outbox_orders) as orders`,
  );
  return rows[0];
};

test("after a kill -9 the shop is gone too; the next start creates the example data no second time", async () => {
  const before = await countAll();
  expect(before).toMatchObject({ reservations: 1, orders: 4 });
  const pids = setup.output().matchAll(/(?:its back-end is|runs again, as) process (\d+)/g);
  const shop = Number([...pids].at(-1)?.[1]);
  expect(shop).toBeGreaterThan(0);
  setup.signal("SIGKILL");
  await setup.exited;
  await until("the shop has ended", () => !existsSync(`/proc/${shop}`) || process.platform !== "linux");
  setup = await startLocalSetup(ports, setup.folder); // The issuer, with its port, is part of an identity.
  db = await openDatabase();
  expect(await countAll()).toEqual(before);
});
