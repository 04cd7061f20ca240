import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { startSender } from "./start-sender.ts";
import { crashSender, createSenderHarness, fastSettings, sendAfter } from "./testing/harness.ts";

test("an order whose sender crashed before the dispatch is sent without a check", async () => {
  let checks = 0;
  const find = async () => {
    checks++;
    return { kind: "unknown", reason: "the broker should not be asked" } as const;
  };
  await using s = await createSenderHarness({ broker: { find } });
  await s.accept([1]);
  await crashSender(s, { dispatched: false });
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "succeeded", attempts: 2 }]);
  expect(checks).toBe(0);
});

test("an order whose sender crashed after the dispatch is checked before it is sent again", async () => {
  await using s = await createSenderHarness({ broker: { dedupes: false } });
  await s.accept([1]);
  await crashSender(s, { dispatched: true });
  await s.sender.runOnce();
  expect(s.sends).toEqual([]);
  expect(await s.states()).toMatchObject([{ status: "unknown", attempts: 2 }]);
  await s.passWindow();
  await s.checker.runOnce();
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "succeeded", attempts: 3 }]);
  expect(s.sends).toHaveLength(1);
});

test("an order whose senders always crash is aborted with proof that it was not taken", async () => {
  await using s = await createSenderHarness({ broker: { dedupes: false } });
  await s.accept([1]);
  for (let n = 0; n < 6; n++) await crashSender(s, { dispatched: true });
  await s.db.query(`update outbox_orders set last_sent_at = now() - interval '1 hour'`);
  await s.sender.runOnce();
  expect(await s.states()).toEqual([{ status: "aborted", attempts: 7, last_error_code: "INTERNAL_ERROR" }]);
  expect(s.sends).toEqual([]);
});

test("the timestamp and the window of a request that is ruled out do not count", async () => {
  await using s = await createSenderHarness();
  await s.accept([1]);
  await s.db.query(
    `update outbox_orders set first_sent_at = now(), last_sent_at = now() + interval '1 hour', window_ends_at = now() + interval '1 hour'`,
  );
  s.fault("lost-before");
  await s.sender.runOnce();
  expect(
    await s.rows(
      `select status, last_sent_at < now() + interval '1 minute' as sent, window_ends_at < now() + interval '50 minutes' as ends
         from outbox_orders`,
    ),
  ).toEqual([{ status: "unknown", sent: true, ends: true }]);
});

test("a request with an earlier timestamp does not replace that of an unresolved one", async () => {
  await using s = await createSenderHarness();
  await s.accept([1]);
  await crashSender(s, { dispatched: true });
  await s.db.query(`update outbox_orders set last_sent_at = now() + interval '5 minutes'`);
  s.fault("lost-before");
  await s.sender.runOnce();
  expect(s.sends).toHaveLength(1);
  expect(await s.rows(`select status, last_sent_at > now() + interval '4 minutes' as kept from outbox_orders`)).toEqual(
    [{ status: "unknown", kept: true }],
  );
});

test("a later request does not shorten the window of an unresolved one", async () => {
  await using s = await createSenderHarness();
  await s.accept([1]);
  await crashSender(s, { dispatched: true });
  await s.db.query(`update outbox_orders set window_ends_at = now() + interval '1 hour'`);
  s.fault("lost-before");
  await s.sender.runOnce();
  expect(s.sends).toHaveLength(1);
  const [{ kept }] = await s.rows(`select window_ends_at > now() + interval '50 minutes' as kept from outbox_orders`);
  expect(kept).toBe(true);
});

test("a sender whose order was claimed by another sends nothing and writes nothing", async () => {
  await using s = await createSenderHarness();
  await s.accept([1]);
  let before: unknown[] = [];
  const run = await sendAfter(s, async () => {
    await s.db.query(`update outbox_orders set lease_epoch = lease_epoch + 1, locked_by = 'another'`);
    before = await s.rows(`select * from outbox_orders`);
  });
  expect(run).toMatchObject({ claimed: 1, leaseLost: 1 });
  expect(await s.rows(`select * from outbox_orders`)).toEqual(before);
  expect(s.sends).toEqual([]);
});

test("a sender whose lease has expired sends nothing", async () => {
  await using s = await createSenderHarness();
  await s.accept([1]);
  const run = await sendAfter(s, () => s.db.query(`update outbox_orders set lease_until = clock_timestamp()`));
  expect(run).toMatchObject({ claimed: 1, leaseLost: 1 });
  expect(s.sends).toEqual([]);
});

test("recording the dispatch renews the lease", async () => {
  let left: unknown;
  await using s = await createSenderHarness({
    broker: {
      async send(order, options) {
        [left] = await s.rows(
          `select lease_until > clock_timestamp() + interval '1 minute' as whole from outbox_orders`,
        );
        return s.paper.send(order, options);
      },
    },
  });
  await s.accept([1]);
  await sendAfter(s, () => s.db.query(`update outbox_orders set lease_until = clock_timestamp() + interval '50 s'`));
  expect(left).toEqual({ whole: true });
});

test("an error during the check of an unresolved order leaves it unresolved", async () => {
  const find = async () => {
    throw new Error("a defect");
  };
  await using s = await createSenderHarness({ broker: { find } });
  await s.accept([1]);
  await crashSender(s, { dispatched: true });
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "unknown", last_error_code: "INTERNAL_ERROR" }]);
});

test("a sender that stalls between the dispatch and the request sends nothing", async () => {
  const stall = () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600);
  // The rest of the lease is then shorter than the timeout, and no other sender has claimed the order.
  await using s = await createSenderHarness({
    settings: { timeoutMs: fastSettings.leaseMs - 500 },
    telemetry: { dispatched: stall },
  });
  await s.accept([1]);
  await s.sender.runOnce();
  expect(s.sends).toEqual([]);
  expect(await s.states()).toMatchObject([{ status: "pending", attempts: 1 }]);
});

test("stopping during a request leaves the order unresolved, not pending", async () => {
  await using s = await createSenderHarness({ settings: { timeoutMs: 100 }, broker: { dedupes: false } });
  await s.accept([1]);
  s.fault("slow");
  const running = startSender(s);
  await until("it is sent", () => s.sends.length === 1);
  await running[Symbol.asyncDispose]();
  expect(["unknown", "succeeded"]).toContain((await s.states())[0]?.status);
});

test("the database rejects every transition that would free an unresolved order", async () => {
  await using s = await createSenderHarness();
  await s.accept([1]);
  await crashSender(s, { dispatched: true });
  for (const status of ["pending", "failed", "aborted", "succeeded"]) {
    const update = s.db.query(
      `update outbox_orders set status = $1, lease_until = null, last_error_code = 'INTERNAL_ERROR',
              done_at = case when $1 in ('aborted', 'succeeded') then now() end`,
      [status],
    );
    await expect(update).rejects.toThrow("order_in_doubt_is_not_free");
  }
});
