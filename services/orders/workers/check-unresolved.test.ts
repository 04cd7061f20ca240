import { expect, test } from "vitest";
import { checkUnresolved } from "./check-unresolved.ts";
import { createSenderHarness } from "./testing/harness.ts";

test.each(["lost-after", "error-after"] as const)(
  "%s: the order is unresolved, then found as taken, and sent once",
  async (fault) => {
    await using s = await createSenderHarness();
    await s.accept([1]);
    s.fault(fault);
    await s.sender.runOnce();
    expect(await s.states()).toMatchObject([{ status: "unknown", attempts: 1 }]);
    expect(
      await s.rows(
        `select status, convert_from(answer, 'utf8')::json ->> 'unresolved' as unresolved from idempo_ledger`,
      ),
    ).toEqual([{ status: "accepted", unresolved: "true" }]);
    expect(await s.sender.runOnce()).toMatchObject({ claimed: 0 });
    await s.makeDue();
    await s.checker.runOnce();
    expect(await s.states()).toEqual([{ status: "succeeded", attempts: 1, last_error_code: null }]);
    expect(await s.events()).toEqual(["OrderAccepted", "OrderUnresolved", "OrderSucceeded", "OrderFilled"]);
    expect(s.sends).toHaveLength(1);
  },
);

test("a lost request is checked during its window, and sent again only after it", async () => {
  await using s = await createSenderHarness({ broker: { dedupes: false } });
  await s.accept([1]);
  s.fault("lost-before");
  await s.sender.runOnce();
  for (let checks = 0; checks < 8; checks++) {
    await s.makeDue();
    expect(await s.checker.runOnce()).toMatchObject({ settled: 1 });
    expect(await s.sender.runOnce()).toMatchObject({ claimed: 0 });
  }
  expect(await s.steps()).toBe("pending>sending>unknown");
  const [{ ms }] = await s.rows(
    `select extract(epoch from next_retry_at - clock_timestamp()) * 1000 as ms from outbox_orders`,
  );
  expect(Number(ms)).toBeGreaterThan(30_000);
  expect(await s.events()).toEqual(["OrderAccepted", "OrderUnresolved"]);
  await s.passWindow();
  await s.checker.runOnce();
  expect(await s.states()).toMatchObject([{ status: "pending" }]);
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "succeeded", attempts: 2 }]);
  expect(s.sends).toHaveLength(2);
});

test("a lost request to a broker that deduplicates is checked and sent again after its backoff", async () => {
  await using s = await createSenderHarness();
  await s.accept([1]);
  s.fault("lost-before", "lost-after");
  await s.sender.runOnce();
  await s.makeDue();
  await s.checker.runOnce();
  expect(await s.steps()).toBe("pending>sending>unknown>sending");
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "unknown", attempts: 2 }]);
  await s.makeDue();
  await s.checker.runOnce();
  expect(await s.states()).toMatchObject([{ status: "succeeded", attempts: 2 }]);
  expect(s.sends).toHaveLength(2);
});

test("a refused request leaves the order unresolved while an earlier one may still arrive", async () => {
  await using s = await createSenderHarness();
  await s.accept([1]);
  s.fault("lost-before", "busy");
  await s.sender.runOnce();
  await s.makeDue();
  await s.checker.runOnce();
  await s.sender.runOnce();
  expect(await s.states()).toMatchObject([{ status: "unknown", attempts: 2 }]);
});

test("an unresolved order without attempts left is aborted only with proof that it was not taken", async () => {
  await using s = await createSenderHarness({ settings: { backoffMs: [1] } });
  await s.accept([1]);
  s.fault("lost-before");
  await s.sender.runOnce();
  await s.makeDue();
  await s.checker.runOnce();
  expect(await s.states()).toMatchObject([{ status: "unknown" }]);
  await s.passWindow();
  await s.checker.runOnce();
  expect(await s.states()).toEqual([{ status: "aborted", attempts: 1, last_error_code: "BROKER_TIMEOUT" }]);
});

test("an order stays unresolved for as long as the broker returns no result", async () => {
  const find = async () => ({ kind: "unknown", reason: "no idea" }) as const;
  await using s = await createSenderHarness({ broker: { find } });
  await s.accept([1]);
  s.fault("lost-before");
  await s.sender.runOnce();
  for (let checks = 0; checks < 20; checks++) {
    await s.passWindow();
    await s.checker.runOnce();
  }
  expect(await s.states()).toEqual([{ status: "unknown", attempts: 1, last_error_code: "BROKER_TIMEOUT" }]);
  expect(await s.rows(`select count(*)::int as steps from order_status_history`)).toEqual([{ steps: 3 }]);
});

test("checks and resends do not change in_doubt_since and first_sent_at", async () => {
  await using s = await createSenderHarness();
  await s.accept([1]);
  s.fault("lost-before", "lost-before");
  await s.sender.runOnce();
  const since = `select in_doubt_since, first_sent_at from outbox_orders`;
  await s.db.query(
    `update outbox_orders set in_doubt_since = in_doubt_since - interval '1 hour', first_sent_at = first_sent_at - interval '1 hour'`,
  );
  const before = await s.rows(since);
  await s.makeDue();
  await s.checker.runOnce();
  await s.sender.runOnce();
  expect(s.sends).toHaveLength(2);
  expect(await s.rows(since)).toEqual(before);
  const find = async () => ({ kind: "unknown", reason: "no idea" }) as const;
  await s.makeDue();
  await checkUnresolved({ ...s, broker: { ...s.broker, find } }).runOnce();
  expect(await s.rows(`select status, asked from outbox_orders`)).toEqual([{ status: "unknown", asked: 3 }]);
  expect(await s.rows(since)).toEqual(before);
});

test("a broker that deduplicates is not sent an order again before its backoff is over", async () => {
  await using s = await createSenderHarness({ settings: { backoffMs: [3_600_000, 1] } });
  await s.accept([1]);
  s.fault("lost-before");
  await s.sender.runOnce();
  await s.makeDue();
  await s.checker.runOnce();
  expect(await s.steps()).toBe("pending>sending>unknown");
});

test("one worker at a time checks an order, and one that lost its lease changes nothing", async () => {
  const found = { kind: "not-taken-yet" } as const;
  await using s = await createSenderHarness({
    broker: {
      async find() {
        expect(await s.checker.runOnce()).toMatchObject({ claimed: 0 });
        await s.db.query(`update outbox_orders set lease_epoch = lease_epoch + 1, locked_by = 'another'`);
        return found;
      },
    },
  });
  await s.accept([1]);
  s.fault("lost-before");
  await s.sender.runOnce();
  await s.makeDue();
  expect(await s.checker.runOnce()).toMatchObject({ claimed: 1, leaseLost: 1 });
  expect(await s.rows(`select status, locked_by, lease_until is not null as claimed from outbox_orders`)).toEqual([
    { status: "unknown", locked_by: "another", claimed: true },
  ]);
});

test("a check that throws releases no lease but its own", async () => {
  await using s = await createSenderHarness({
    broker: {
      async find() {
        await s.db.query(`update outbox_orders set lease_epoch = lease_epoch + 1, locked_by = 'another'`);
        throw new Error("a defect");
      },
    },
  });
  await s.accept([1]);
  s.fault("lost-before");
  await s.sender.runOnce();
  await s.makeDue();
  expect(await s.checker.runOnce()).toMatchObject({ claimed: 1, leaseLost: 1 });
  expect(await s.rows(`select locked_by, lease_until is not null as claimed from outbox_orders`)).toEqual([
    { locked_by: "another", claimed: true },
  ]);
});
