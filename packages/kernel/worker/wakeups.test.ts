import { test } from "vitest";
import { transaction } from "../db/index.ts";
import { openOutbox } from "../outbox/index.ts";
import { testDatabase, until } from "../testing/index.ts";
import { done, openWakeups } from "./index.ts";
import { outboxWorker, readStatuses } from "./testing.ts";

test("a signal from any process wakes a worker long before its poll", async () => {
  await using t = await testDatabase();
  await using here = openWakeups({ url: t.url });
  await using elsewhere = openWakeups({ url: t.url });
  await Promise.all([here.listening, elsewhere.listening]);
  await using w = outboxWorker(t.db, async () => done, {
    settings: { pollMs: 600_000 },
    wakeups: here,
    topic: "app.outbox",
  });
  w.start();
  for (const wakeups of [here, elsewhere]) {
    const signalling = openOutbox({ wakeups, topic: "app.outbox" });
    await transaction(t.db, (tx) =>
      signalling.append(tx, { eventType: "T", subject: "t.events", aggregateKey: "a", version: 1, payload: {} }),
    );
    await until("it is published", async () => (await readStatuses(t.db)).every((status) => status === "PUBLISHED"));
  }
});

test("a lost wake-up connection reconnects and wakes every subscriber", async () => {
  await using t = await testDatabase();
  await using wakeups = openWakeups({ url: t.url });
  let woken = 0;
  wakeups.on("topic", () => woken++);
  await wakeups.listening;
  const before = woken;
  await t.db.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'todoke wakeups' and datname = current_database()`,
  );
  await until("it has reconnected", () => woken > before);
});
