import { expect, test } from "vitest";
import { kernelMigrations } from "../migrations/index.ts";
import { freePort, longTimeouts, testDatabase, until } from "../testing/index.ts";
import { openWakeups } from "../worker/index.ts";
import { isUnavailable, migrate, migrationUrl, openDb } from "./index.ts";

/** The URL with another server before its own, which does not run. */
const afterDeadServer = async (url: string) => url.replace("@", `@127.0.0.1:${await freePort()},`);

test("if the first of two servers is gone, pools, wake-ups and migrations reach the second", async () => {
  await using t = await testDatabase({ sets: [] });
  const url = await afterDeadServer(t.url);
  const db = t.open({ ...longTimeouts, url: migrationUrl(url, { dryRun: false }) });
  const applied = await migrate(db, { schema: "app", sets: [kernelMigrations] });
  expect(applied.length).toBeGreaterThan(0);
  expect((await t.db.query(`select count(*)::int as n from app.schema_migrations`)).rows).toEqual([
    { n: applied.length },
  ]);

  await using here = openWakeups({ url });
  await using elsewhere = openWakeups({ url: t.url });
  let woken = 0;
  here.on("topic", () => woken++);
  await Promise.all([here.listening, elsewhere.listening]);
  const before = woken;
  elsewhere.signal("topic");
  await until("it is woken by another process", () => woken > before);
});

test("if no server can be used, the error names each with its reason, and no password", async () => {
  const ports = [await freePort(), await freePort()];
  const db = openDb({ url: `postgres://app:secret@127.0.0.1:${ports[0]},127.0.0.1:${ports[1]}/app` });
  await using _ = { [Symbol.asyncDispose]: () => db.end() };
  const error = await db.query("select 1").catch((thrown) => thrown);
  expect(isUnavailable(error)).toBe(true);
  expect(error.message).toMatch(/^no server of the list accepts writes: /);
  for (const port of ports) expect(error.message).toContain(`127.0.0.1:${port}: connect ECONNREFUSED`);
  expect(error.message).not.toContain("secret");
});
