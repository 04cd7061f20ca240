import { expect, test } from "vitest";
import { fixedId, testDatabase } from "../testing/index.ts";
import { outboxMetrics } from "./index.ts";

test("every metric is prefixed with the name of the service", () => {
  expect(Object.keys(outboxMetrics("shop").catalogue)).toEqual([
    "shop.outbox.publish.delay",
    "shop.outbox.backlog",
    "shop.outbox.backlog.age",
    "shop.outbox.failed.current",
  ]);
});

test("the gauges show the backlog, its age and FAILED events", async () => {
  await using t = await testDatabase();
  await t.db.query(
    `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, status, created_at)
     values ($1, 'T', 's', 'a', 1, '{}', 'PENDING', now() - interval '90 seconds'),
            ($2, 'T', 's', 'b', 1, '{}', 'FAILED', now())`,
    [fixedId(1), fixedId(2)],
  );
  expect(await outboxMetrics("shop").read(t.db)).toEqual([
    { name: "shop.outbox.backlog", value: 1, attributes: { status: "pending" } },
    { name: "shop.outbox.backlog", value: 0, attributes: { status: "in_flight" } },
    { name: "shop.outbox.backlog.age", value: expect.toSatisfy((seconds: number) => seconds >= 90) },
    { name: "shop.outbox.failed.current", value: 1 },
  ]);
});
