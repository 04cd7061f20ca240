/** The examples of the client, as programs, against one running system. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { type Browser, openBrowser, startControlledProvider } from "@todoke/identity/testing";
import { freePort, until } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apiKeyFor, startAll } from "./all-services.ts";

const parts = new AsyncDisposableStack();
let all: Awaited<ReturnType<typeof startAll>>;

beforeAll(async () => {
  const port = await freePort();
  const origin = `http://localhost:${port}`;
  const backchannelLogoutUri = `${origin}/login/backchannel-logout`;
  const provider = parts.use(await startControlledProvider({ origin, backchannelLogoutUri }));
  const settings = {
    GATEWAY_BFF_PORT: String(port),
    GATEWAY_BFF_ORIGIN: origin,
    OIDC_ISSUER: provider.issuer,
    OIDC_CLIENT_ID: provider.client.clientId,
    OIDC_CLIENT_SECRET: provider.client.clientSecret,
  };
  all = parts.use(await startAll({ settings }));
});
afterAll(() => parts.disposeAsync());

const urlOf = (wanted: string): string => all.running.find(({ name }) => name === wanted)?.url ?? "";

function run(name: string, env: Record<string, string>, ...args: readonly string[]) {
  const program = fileURLToPath(new URL(`../examples/${name}/main.ts`, import.meta.url));
  const child: ChildProcess = spawn(process.execPath, [program, ...args], { env: { PATH: process.env.PATH, ...env } });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (text) => (output += text));
  const ended = once(child, "close").then(([code]) => ({ code, output }));
  /** What follows `text` in the line that has it. */
  async function untilPrinted(text: string): Promise<string> {
    const find = () =>
      output
        .split("\n")
        .find((line) => line.startsWith(text))
        ?.slice(text.length);
    await until(`${name} prints ${text}`, () => output.includes(`${text}`) || child.exitCode !== null);
    return find() ?? expect.fail(output);
  }
  return { child, ended, untilPrinted };
}

/** A player's browser: it goes where it is sent, and enters the password at the provider. */
async function logInAt(browser: Browser, url: string, name: string): Promise<void> {
  const provider = await browser.visit(url);
  const form = await browser.visit(provider.url);
  const back = await browser.visit(form.url, { username: name, password: `${name}-demo` });
  const { url: callback } = await browser.visit(back.url);
  expect(await (await fetch(callback)).text()).toContain("You are logged in");
}

test("the game: two players log in, meet, and have the news", async () => {
  const gateway = `http://localhost:${new URL(urlOf("gateway-bff")).port}`;
  const games = await Promise.all(
    ["alice", "bob"].map(async (name) => {
      const game = run("game", { TODOKE_GATEWAY: gateway });
      await logInAt(openBrowser(), await game.untilPrinted("Log in at "), name);
      return { game, userId: await game.untilPrinted("Logged in as ") };
    }),
  );
  const results = await Promise.all(games.map(({ game }) => game.ended));
  const matches = new Set<string>();
  for (const [index, { code, output }] of results.entries()) {
    const opponent = games[1 - index]?.userId;
    expect([code, output]).toEqual([0, expect.stringContaining(`with ${opponent}\n`)]);
    expect(output).toContain("News: ");
    matches.add(/Matched in (\S+)/.exec(output)?.[1] ?? "");
  }
  expect(matches.size).toBe(1);
});

test("the shop's back-end: a purchase that is reported again and again is granted once, also by another process", async () => {
  const env = { ENTITLEMENT_URL: urlOf("entitlement"), TODOKE_API_KEY: apiKeyFor("entitlements:write") };
  const purchase = JSON.stringify({ purchase_id: "p_shop", user_id: "u_shop", product: "sword" });
  async function report(port: string, body = purchase): Promise<[number, string]> {
    const response = await fetch(`http://127.0.0.1:${port}`, { method: "POST", body });
    return [response.status, await response.text()];
  }
  const first = run("shop-back-end", env);
  const port = await first.untilPrinted("Listening on ");
  const reports = await Promise.all(Array.from({ length: 5 }, () => report(port)));
  expect(new Set(reports.map(String))).toEqual(new Set(["200,granted, version 1\n"]));
  first.child.kill("SIGKILL");
  await first.ended;

  const second = run("shop-back-end", env);
  const secondPort = await second.untilPrinted("Listening on ");
  expect(await report(secondPort)).toEqual([200, "granted, version 1\n"]);
  const [status, text] = await report(
    secondPort,
    JSON.stringify({ purchase_id: "p_2", user_id: "", product: "sword" }),
  );
  expect([status, text]).toEqual([422, expect.stringContaining("user_id")]);
  second.child.kill("SIGTERM");
  await second.ended;
  const { rows } = await all.db.query(
    `select count(*)::int as grants from entitlement.entitlement_audit where user_id = 'u_shop'`,
  );
  expect(rows).toEqual([{ grants: 1 }]);
});

test("the nightly job: run twice, it books each bonus once, and the points arrive", async () => {
  const env = { POINTS_URL: urlOf("points"), TODOKE_API_KEY: apiKeyFor("points:write") };
  const users = ["u_night1", "u_night2", "u_night3"];
  const at = "2026-01-16T00:00:00Z"; // It is past, so that the points are due at once.
  const first = await run("nightly-points", env, at, ...users.slice(0, 2)).ended;
  const again = await run("nightly-points", env, at, ...users).ended;
  expect([first, again]).toEqual([
    { code: 0, output: "2 booked, 0 of them by an earlier run\n" },
    { code: 0, output: "3 booked, 2 of them by an earlier run\n" },
  ]);
  await until(
    "the points are granted",
    async () => {
      const { rows } = await all.db.query(
        `select sum(balance)::int as points from points.point_root where user_id = any($1)`,
        [users],
      );
      return rows[0].points === 300;
    },
    { withinMs: 60_000 },
  );
});
