import { expect, test } from "vitest";
import { testDatabase, until } from "../testing/index.ts";
import { openWakeups, shareWakeups } from "./index.ts";

const listeners = `select from pg_stat_activity
  where datname = current_database() and application_name = 'todoke wakeups'`;

test("parts of a process with the same URL share a connection, and wake each other and other processes", async () => {
  await using t = await testDatabase();
  await using one = shareWakeups({ url: t.url });
  await using two = shareWakeups({ url: t.url });
  await Promise.all([one.listening, two.listening]);
  expect((await t.db.query(listeners)).rowCount).toBe(1);
  const woken: string[] = [];
  one.on("topic", () => woken.push("one"));
  const unsubscribe = two.on("topic", () => woken.push("two"));
  one.signal("topic");
  expect(woken).toEqual(["one", "two"]);
  unsubscribe();
  two.signal("topic");
  expect(woken).toEqual(["one", "two", "one"]);

  await using other = openWakeups({ url: t.url });
  await other.listening;
  let isWoken = false;
  other.on("topic", () => {
    isWoken = true;
  });
  two.signal("topic");
  await until("the other process is woken", () => isWoken);
});

test("the connection stays until its last user is disposed, and is opened again by the next", async () => {
  await using t = await testDatabase();
  const one = shareWakeups({ url: t.url });
  const two = shareWakeups({ url: t.url });
  await two.listening;
  const woken: string[] = [];
  one.on("topic", () => woken.push("one"));
  two.on("topic", () => woken.push("two"));
  await one[Symbol.asyncDispose]();
  await one[Symbol.asyncDispose]();
  two.signal("topic");
  expect(woken).toEqual(["two"]);
  await two[Symbol.asyncDispose]();
  await until("it is closed", async () => (await t.db.query(listeners)).rowCount === 0);
  await using three = shareWakeups({ url: t.url });
  await three.listening;
  expect((await t.db.query(listeners)).rowCount).toBe(1);
});
