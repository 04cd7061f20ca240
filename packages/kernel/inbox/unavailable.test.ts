import { expect, test } from "vitest";
import { openFaultProxy } from "../testing/index.ts";
import { delivery, insertEffects, kinds, never, readEffects, redelivery, setup } from "./testing.ts";

test.each(["request", "answer"] as const)("an event takes effect once if the %s of COMMIT is lost", async (lost) => {
  await using t = await setup();
  await using proxy = await openFaultProxy(t.url);
  const db = t.open({ url: proxy.url });
  const { handle } = t.inboxFor("one", { db });
  await handle([delivery("warm-up")], never);
  proxy.cutNext("commit", lost);
  const event = delivery("a");
  const [outcome] = await handle([event], never);
  // Either the second attempt within the batch found the mark, or the bus redelivers the event.
  if (outcome?.kind !== "done") expect(kinds(await handle([redelivery(event)], never))).toEqual(["done"]);
  expect(await readEffects(t.db)).toEqual(["warm-up", "a"]);
});

test("an attempt whose COMMIT is lost stays counted", async () => {
  await using t = await setup();
  await using proxy = await openFaultProxy(t.url);
  const { handle } = t.inboxFor("one", { db: t.open({ url: proxy.url }) });
  await handle([delivery("warm-up")], never);
  proxy.cutNext("commit", "request");
  expect(kinds(await handle([redelivery(delivery("a"))], never))).toEqual(["release"]);
  expect((await t.db.query(`select attempt_count from inbox_attempts`)).rows).toEqual([{ attempt_count: 1 }]);
});

test("an unavailable database does not count against the event", async () => {
  await using t = await setup();
  await using proxy = await openFaultProxy(t.url);
  const db = t.open({ url: proxy.url });
  const { handle } = t.inboxFor("one", { db, attemptsMax: 1 });
  await proxy[Symbol.asyncDispose]();
  expect(kinds(await handle([delivery("a")], never))).toEqual(["release"]);
});

test("an unavailable dependency of the effect does not count against the event", async () => {
  await using t = await setup();
  let isDown = true;
  const inbox = t.inboxFor("one", {
    attemptsMax: 2,
    async effect(tx, names) {
      if (isDown)
        throw new Error("connection refused", { cause: Object.assign(new Error(), { code: "ECONNREFUSED" }) });
      await insertEffects(tx, "one", names);
    },
  });
  const a = delivery("a");
  for (let i = 0; i < 5; i++) expect(kinds(await inbox.handle([redelivery(a)], never))).toEqual(["release"]);
  isDown = false;
  expect(kinds(await inbox.handle([redelivery(a)], never))).toEqual(["done"]);
  expect(await readEffects(t.db)).toEqual(["a"]);
});
