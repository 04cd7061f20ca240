import { expect, test } from "vitest";
import { reserveSendSlot } from "../store/send-slots.ts";
import { createSenderHarness } from "../workers/testing/harness.ts";

test("slots are reserved at the rate of all senders, and none too far away", async () => {
  await using s = await createSenderHarness();
  const reserve = () => reserveSendSlot(s.db, { adapter: "paper", perSecond: 2, waitMaxMs: 60_000 });
  const [{ at }] = await s.rows(`select clock_timestamp()::text as at`);
  const slots = await Promise.all(Array.from({ length: 20 }, reserve));
  expect(slots).not.toContain(undefined);
  // Twenty slots at two per second.
  const rate = await s.rows(`select next_at >= $1::timestamptz + interval '10 s' as kept from broker_turns`, at);
  expect(rate).toEqual([{ kept: true }]);
  expect(await reserveSendSlot(s.db, { adapter: "another", perSecond: 2, waitMaxMs: 1 })).toBe(0);
  await s.db.query(`update broker_turns set next_at = clock_timestamp() + interval '1 hour'`);
  expect(await reserve()).toBeUndefined();
  // Idle time is not saved up for a burst.
  await s.db.query(`update broker_turns set next_at = clock_timestamp() - interval '1 hour'`);
  await reserve();
  const next = await s.rows(`select next_at > $1::timestamptz as later from broker_turns where adapter = 'paper'`, at);
  expect(next).toEqual([{ later: true }]);
});
