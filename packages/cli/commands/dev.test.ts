import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { isPortFree, startEngine } from "@todoke/engines";
import { openSigner, readSigningKey, readVerifyingKeys, tokenVerifier } from "@todoke/http";
import { openBrowser } from "@todoke/identity/testing";
import { freePort, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { services } from "../services.ts";
import { variable } from "../settings.ts";
import { openShell, type RunningCommand } from "../testing/command.ts";

const ready = "Ready. Ctrl-C stops.";

/** Free ports, and the URL of the only service. */
async function site() {
  const [counter, postgres, provider] = [await freePort(), await freePort(), await freePort()];
  const ask = async (path: string) => (await fetch(`http://127.0.0.1:${counter}${path}`)).text();
  const handed = async (): Promise<Record<string, string>> => JSON.parse(await ask("/env"));
  const env = { COUNTER_PORT: String(counter), POSTGRES_PORT: String(postgres), OIDC_PROVIDER_PORT: String(provider) };
  return { env, postgres, counter, provider, issuer: `http://127.0.0.1:${provider}`, ask, handed };
}

async function stop(screen: RunningCommand) {
  screen.process.kill("SIGTERM");
  return screen.ended;
}

test("dev starts in an empty folder, and its data survives a kill -9 and an immediate restart", async () => {
  await using shell = openShell();
  const { env, ask, postgres } = await site();
  const first = shell.start("dev", env);
  await first.untilPrinted(ready);
  await ask("/add");
  expect(await ask("/add")).toBe("2");
  first.process.kill("SIGKILL");
  await first.ended;

  const second = shell.start("dev", env);
  await second.untilPrinted(ready);
  expect(await ask("/count")).toBe("2");

  // Another process may use the embedded database with /debug open, and only that database.
  const { databaseUrl } = JSON.parse(readFileSync(join(shell.folder, ".todoke/dev.json"), "utf8"));
  const joined = { COUNTER_PORT: String(await freePort()), DATABASE_URL: databaseUrl, TODOKE_DEV: "true" };
  const other = shell.start("serve counter", joined);
  await other.untilPrinted(`http://127.0.0.1:${joined.COUNTER_PORT}`);
  await stop(other);

  const { code, out } = await stop(second);
  expect(code).toBe(0);
  expect(out).not.toContain("migration");
  expect(await isPortFree(postgres)).toBe(true);
});

test("after a kill -9 the next run waits until the old database has stopped", async () => {
  await using shell = openShell();
  const { env, ask } = await site();
  const first = shell.start("dev", env);
  await first.untilPrinted(ready);
  await ask("/add");
  const postmaster = Number.parseInt(
    readFileSync(join(shell.folder, ".todoke/postgres/data/postmaster.pid"), "utf8"),
    10,
  );
  process.kill(postmaster, "SIGSTOP");
  first.process.kill("SIGKILL");
  await first.ended;

  const second = shell.start("dev", env);
  await second.untilPrinted("The previous run was killed. Waiting for its database to stop …");
  process.kill(postmaster, "SIGCONT");
  await second.untilPrinted(ready);
  expect(await ask("/count")).toBe("1");
  expect((await stop(second)).code).toBe(0);
});

test("dev prints the URLs of everything and a command to try", async () => {
  await using shell = openShell();
  const { env, counter, postgres, issuer } = await site();
  const screen = shell.start("dev", env);
  await screen.untilPrinted(ready);
  const { out, err } = await stop(screen);
  expect(out).toContain("Schemas: 1 migration ran\n");
  const database = `postgres://postgres@127.0.0.1:${postgres}/postgres`;
  expect(out).toContain(`  counter    ${`http://127.0.0.1:${counter}`.padEnd(database.length)}   counts\n`);
  expect(out).toContain(`  provider   ${issuer.padEnd(database.length)}   demo OpenID provider\n`);
  expect(out).toContain(`  database   ${database}   PostgreSQL\n`);
  expect(out).toContain(
    "\nLog in as alice / alice-demo, bob / bob-demo, admin / admin-demo, olive / olive-demo, vera / vera-demo.\n",
  );
  expect(out).toContain(`Try it:\n\ncurl -X POST http://127.0.0.1:${counter}/add\n`);
  expect(err).toBe("Stopping: work in progress is finished first. Press Ctrl-C again to stop at once.\n");
});

test("a busy port is an error that names its variable, before anything starts", async () => {
  await using shell = openShell();
  const { env, counter, postgres, provider } = await site();
  await using _ = createServer().listen(counter, "127.0.0.1");
  const { code, err } = await shell.run("dev", env);
  expect(code).toBe(1);
  expect(err).toContain(
    `Port ${counter} (counter) is in use: stop the process that listens on it, or set COUNTER_PORT`,
  );
  expect(existsSync(join(shell.folder, ".todoke/postgres"))).toBe(false);

  const other = await site();
  await using __ = createServer().listen(postgres, "127.0.0.1");
  const again = await shell.run("dev", { ...other.env, POSTGRES_PORT: String(postgres) });
  expect(again).toMatchObject({ code: 1, err: expect.stringContaining("set POSTGRES_PORT to another port") });

  await using ___ = createServer().listen(provider, "127.0.0.1");
  const third = await shell.run("dev", { ...other.env, OIDC_PROVIDER_PORT: String(provider) });
  expect(third.err).toContain(`Port ${provider} (OpenID provider) is in use`);
});

test("dev starts an OpenID provider, and creates keys that survive a restart", async () => {
  await using shell = openShell();
  const { env, issuer, counter, handed } = await site();
  const keysThere = async () => (await fetch(`${issuer}/jwks`)).text();
  const first = shell.start("dev", env);
  await first.untilPrinted(ready);
  const [before, keysBefore] = [await handed(), await keysThere()];
  expect(before).toMatchObject({
    OIDC_ISSUER: issuer,
    OIDC_CLIENT_ID: "todoke",
    ACCOUNT_ADMINS: `${issuer} admin`,
    COUNTER_URL: `http://127.0.0.1:${counter}`,
    GATEWAY_BFF_SECRET: expect.stringMatching(/^[\w-]{43}$/),
    OIDC_CLIENT_SECRET: expect.stringMatching(/^[\w-]{43}$/),
    MATCHMAKING_TICKET_SECRET: expect.stringMatching(/^[\w-]{43}$/),
  });
  expect(await whoIs(before)).toMatchObject({ name: "service:gateway-bff" });
  for (const file of ["secrets.json", "provider-keys.json"])
    expect(statSync(join(shell.folder, ".todoke", file)).mode & 0o777).toBe(0o600);
  await stop(first);

  const second = shell.start("dev", env);
  await second.untilPrinted(ready);
  expect(await handed()).toEqual(before);
  expect(await keysThere()).toBe(keysBefore);
  const { out, err } = await stop(second);
  for (const name of ["GATEWAY_BFF_SECRET", "GATEWAY_BFF_TOKEN_KEY", "OIDC_CLIENT_SECRET", "MATCHMAKING_TICKET_SECRET"])
    expect(out + err).not.toContain(before[name]);
});

/** The caller that a service sees when the gateway calls it with these keys. */
async function whoIs(env: Record<string, string>) {
  const key = readSigningKey(env, "GATEWAY_BFF_TOKEN_KEY", []);
  if (!key) throw new Error("no key to sign with");
  const verifier = tokenVerifier({ audience: "counter", keys: readVerifyingKeys(env, []) });
  return verifier(await openSigner({ issuer: "gateway-bff", key }).tokenFor("counter"));
}

test("the printed logins work with all services, and the printed grant is in the inbox of alice", async () => {
  await using shell = openShell("todoke");
  const { env } = await site();
  const ports = Object.fromEntries(
    await Promise.all(services.map(async ({ name }) => [variable(name, "PORT"), String(await freePort())])),
  );
  const screen = shell.start("dev", { ...env, ...ports });
  const banner = await screen.untilPrinted(ready);
  const [, user_id = ""] = /^The user ID of alice is (\S+)\. /m.exec(banner) ?? [];
  expect(await sendGrant(banner)).toMatchObject({ user_id, status: "ACTIVE" });
  const origin = `http://localhost:${ports.GATEWAY_BFF_PORT}`;
  const player = await loggedIn(origin, { username: "alice", password: "alice-demo" });
  // Version 1: the login has found the user as the start created her.
  const alice = { user_id, version: 1, roles: ["USER"], email: "alice@example.com", display_name: "Alice Example" };
  expect(await player("/v1/me")).toMatchObject({ status: 200, body: alice });
  const inbox = async () => JSON.stringify((await player("/v1/inbox")).body);
  await until("the grant is in her inbox", async () => (await inbox()).includes("EntitlementGranted"));
  expect(await player("/v1/admin/users")).toMatchObject({ status: 403 });
  const admin = await loggedIn(origin, { username: "admin", password: "admin-demo" });
  expect(await admin("/v1/admin/users?email=alice@example.com")).toMatchObject({ status: 200 });
  const { code, out } = await stop(screen);
  expect(code).toBe(0);
  expect(out).toContain(`  gateway-bff    ${origin} `);
  expect(out).toContain(`\nLog in at ${origin}/login as alice / alice-demo, `);
  expect(out).toContain(`\nThe console for staff is at ${origin}/console, the API reference at ${origin}/docs.\n`);
});

/** Sends the grant that `todoke dev` has printed. */
async function sendGrant(banner: string): Promise<unknown> {
  const [, url = "", key = "", body = ""] =
    /curl -i (\S+\/grants) .*?"Idempotency-Key: (\S+)".*? -d '(.*?)'/s.exec(banner) ?? [];
  const headers = { authorization: "Bearer tdk_dev", "idempotency-key": key, "content-type": "application/json" };
  return (await fetch(url, { method: "POST", headers, body })).json();
}

/** Logs in as a browser does, and returns the response of the gateway. */
async function loggedIn(origin: string, form: Record<string, string>) {
  const browser = openBrowser();
  const sent = await browser.visit(`${origin}/login`);
  const page = await browser.visit(sent.url);
  const back = await browser.visit(page.url, form);
  await browser.visit(back.url);
  return async (path: string) => {
    const { status, text } = await browser.visit(origin + path);
    return { status, body: JSON.parse(text) };
  };
}

test("with OIDC_ISSUER dev starts no provider, and given settings are not changed", async () => {
  await using shell = openShell();
  const { env, provider, handed } = await site();
  const own = {
    OIDC_ISSUER: "https://login.example.com",
    ACCOUNT_ADMINS: "https://login.example.com boss",
    TODOKE_TOKEN_KEYS: "gateway-bff.mine=abc",
  };
  const screen = shell.start("dev", { ...env, ...own });
  await screen.untilPrinted(ready);
  expect(await handed()).toMatchObject(own);
  expect(await handed()).not.toHaveProperty("OIDC_CLIENT_SECRET");
  expect(await handed()).not.toHaveProperty("GATEWAY_BFF_TOKEN_KEY");
  expect(await isPortFree(provider)).toBe(true);
  expect((await stop(screen)).out).not.toContain("alice");
});

test("a second dev in the same folder is rejected", async () => {
  await using shell = openShell();
  const screen = shell.start("dev", (await site()).env);
  await screen.untilPrinted(ready);
  const { code, err } = await shell.run("dev", (await site()).env);
  expect(code).toBe(1);
  expect(err).toContain(`\`todoke dev\` already runs in this folder (process ${screen.process.pid})`);
  expect(err).toContain("Stop it first.");
  await stop(screen);
});

test("doctor checks the database of the running dev and accepts its ports", async () => {
  await using shell = openShell();
  const { env, issuer } = await site();
  const screen = shell.start("dev", env);
  await screen.untilPrinted(ready);
  const { code, out } = await shell.run("doctor", env);
  expect(out).toMatch(/✓ database +PostgreSQL 18/);
  expect(out).toMatch(/✓ counter +the schema is up to date\n/);
  expect(out).toContain(`✓ OpenID     ${issuer}\n`);
  expect(out).toContain("✓ tokens     the gateway signs with gateway-bff.k1, and services accept it\n");
  expect(out).toContain(`used by the \`todoke dev\` that runs here (process ${screen.process.pid})`);
  expect(code).toBe(0);
  await stop(screen);
});

test("Ctrl-C finishes requests in flight; a second one stops at once", async () => {
  await using shell = openShell();
  const { env, ask } = await site();
  const patient = shell.start("dev", env);
  await patient.untilPrinted(ready);
  await ask("/add");
  const held = await fetch(`http://127.0.0.1:${env.COUNTER_PORT}/held`);
  patient.process.kill("SIGINT");
  expect(await held.text()).toBe("1");
  expect((await patient.ended).code).toBe(0);

  const hasty = shell.start("dev", env);
  await hasty.untilPrinted(ready);
  const stuck = await fetch(`http://127.0.0.1:${env.COUNTER_PORT}/stuck`);
  // Repeatedly: signals in the first half second count as duplicates, because a terminal and npm both send one Ctrl-C.
  await until("it has ended", () => !hasty.process.kill("SIGINT"));
  expect((await hasty.ended).code).toBe(1);
  await expect(stuck.text()).rejects.toThrow();
});

test("a DATABASE_URL in the environment is an error that says what to do, and nothing starts", async () => {
  await using shell = openShell();
  const { env } = await site();
  const foreign = { DATABASE_URL: "postgres://u:s3cret@db.example/x", COUNTER_DATABASE_URL: "postgres://db.example/y" };
  const { code, err } = await shell.run("dev", { ...env, ...foreign });
  expect(code).toBe(2);
  expect(err.split("\n")).toEqual([
    "✗ DATABASE_URL is set to postgres://u@db.example/x, and `todoke dev` would migrate and use that database",
    "✗ COUNTER_DATABASE_URL is set to postgres://db.example/y, and `todoke dev` would migrate and use that database",
    "✗ Unset it to use the embedded PostgreSQL, or start with --use-database-url if you mean that database.",
    "",
  ]);
  expect(existsSync(join(shell.folder, ".todoke"))).toBe(false);
});

test("the demo runs on the embedded database only, and with the demo users only", async () => {
  await using shell = openShell();
  const { env } = await site();
  for (const [command, foreign] of [
    ["demo", { OIDC_ISSUER: "https://login.example.com" }],
    ["dev --demo --use-database-url", { DATABASE_URL: "postgres://db.example/x" }],
  ] as const) {
    const { code, err } = await shell.run(command, { ...env, ...foreign });
    expect([code, err]).toEqual([2, expect.stringContaining("unset DATABASE_URL and OIDC_ISSUER")]);
  }
  expect(existsSync(join(shell.folder, ".todoke"))).toBe(false);
});

test("with --use-database-url dev starts no database and accepts neither the demo users nor the printed key", async () => {
  await using engine = await startEngine("postgres");
  await using shell = openShell();
  const { env, postgres, provider, ask, handed } = await site();
  const screen = shell.start("dev --use-database-url", { ...env, DATABASE_URL: engine.url });
  await screen.untilPrinted(ready);
  expect(await ask("/add")).toBe("1");
  const joined = { COUNTER_PORT: String(await freePort()), DATABASE_URL: engine.url, TODOKE_DEV: "true" };
  expect((await shell.run("serve counter", joined)).code).toBe(2);
  expect(await isPortFree(postgres)).toBe(true);
  expect(await isPortFree(provider)).toBe(true);
  expect(await handed()).toMatchObject({ ACCOUNT_ADMINS: "", TODOKE_API_KEYS: "" });
  expect(await handed()).not.toHaveProperty("OIDC_ISSUER");
  const { code, out } = await stop(screen);
  expect(code).toBe(0);
  expect(out).not.toContain(new URL(engine.url).password);
});

test("a service that fails stops the others, and its error is printed", async () => {
  await using shell = openShell();
  const { env, ask } = await site();
  const screen = shell.start("dev", env);
  await screen.untilPrinted(ready);
  await ask("/break");
  const { code, err } = await screen.ended;
  expect(code).toBe(1);
  expect(err).toBe("✗ counter stopped unexpectedly: the spring broke\n");
});

test("a folder without write permission is an error of one line", async () => {
  await using shell = openShell();
  writeFileSync(join(shell.folder, ".todoke"), "a file where the folder should be");
  const { code, err } = await shell.run("dev", (await site()).env);
  expect(code).toBe(1);
  expect(err).toMatch(/^✗ EEXIST: .*\.todoke'\n$/);
});

test("all setting errors are printed at once, and nothing starts", async () => {
  await using shell = openShell();
  const { code, err } = await shell.run("dev", {
    POSTGRES_PORT: "http",
    COUNTER_STEP: "0",
    EVENT_BUS_URL: "kafka://localhost",
    POINTS_RESERVATION_BUS_URL: "reservationQueue",
  });
  expect(code).toBe(2);
  expect(err.split("\n")).toEqual([
    `✗ POSTGRES_PORT is "http" and should be a port from 1 to 64535`,
    "✗ EVENT_BUS_URL begins with kafka:// and should begin with nats://, tls://, amqp://, amqps://, postgres://, postgresql://",
    "✗ POINTS_RESERVATION_BUS_URL is not a URL: it should look like nats://user:password@host:port/name",
    "✗ counter: COUNTER_STEP is not > 0",
    "",
  ]);
  expect(existsSync(join(shell.folder, ".todoke"))).toBe(false);
});
