/** Two real PostgreSQL servers in one URL, of which only one accepts writes. A list with a dead one: packages/kernel/db. */
import { type Engine, startEngine } from "@todoke/engines";
import { migrate, openDb, transaction } from "@todoke/kernel/db";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { longTimeouts, testDatabase, until } from "@todoke/kernel/testing";
import { openWakeups } from "@todoke/kernel/worker";
import { readServerUrl } from "@todoke/service";
import { expect, test } from "vitest";

/** Gives the server the user, the password and an empty database of the URL, as a standby has them. */
async function copyLogin({ url }: Engine, given: string): Promise<void> {
  const { username, password, pathname } = new URL(given);
  const db = openDb({ url: `${url}?options=-c%20default_transaction_read_only%3Doff`, ...longTimeouts });
  await using _ = { [Symbol.asyncDispose]: () => db.end() };
  const verb = username === "postgres" ? "alter" : "create";
  await db.query(`${verb} role "${username}" login superuser password '${decodeURIComponent(password)}'`);
  await db.query(`create database "${pathname.slice(1)}"`);
}

test("of two servers the one that accepts writes is used, wherever it is in the list", async () => {
  await using t = await testDatabase({ sets: [] });
  await using readOnly = await startEngine("postgres", { settings: { default_transaction_read_only: "on" } });
  await copyLogin(readOnly, t.url);
  const [ours, theirs] = [new URL(t.url).host, new URL(readOnly.url).host];
  await using elsewhere = openWakeups({ url: t.url });
  for (const [schema, hosts] of [
    ["first", `${theirs},${ours}`],
    ["second", `${ours},${theirs}`],
  ] as const) {
    const url = readServerUrl({ DATABASE_URL: t.url.replace(ours, hosts) }, "DATABASE_URL") ?? "";
    const db = t.open({ ...longTimeouts, url, schema });
    await migrate(db, { schema, sets: [kernelMigrations] });
    // Several connections at once share one search.
    const ports = await Promise.all(
      Array.from({ length: 4 }, () => transaction(db, (tx) => tx.query(`select inet_server_port() as port`))),
    );
    expect(new Set(ports.map(({ rows }) => String(rows[0].port)))).toEqual(new Set([new URL(t.url).port]));
    await using here = openWakeups({ url });
    let woken = 0;
    here.on(schema, () => woken++);
    await Promise.all([here.listening, elsewhere.listening]);
    const before = woken;
    elsewhere.signal(schema);
    await until("it is woken by another process", () => woken > before);
  }
  const alone = openDb({ url: t.url.replace(ours, `${theirs},${theirs}`), ...longTimeouts });
  await using _ = { [Symbol.asyncDispose]: () => alone.end() };
  await expect(alone.query("select 1")).rejects.toThrow(`${theirs}: it is a standby`);
});
