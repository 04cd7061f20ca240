import { expect, test } from "vitest";
import { busKinds } from "./buses.ts";
import { createHarness } from "./harness.ts";

test.each(busKinds)("%s: a relay that resumes after its lease expired settles nothing", async (kind) => {
  await using harness = await createHarness(kind);
  await harness.append(10, 10);
  const rows = async () =>
    (
      await harness.db.query(
        `select event_id, status, lease_epoch, attempt_count, locked_by, published_at from outbox_events order by position`,
      )
    ).rows;
  const untilSettling = { point: "published", nth: 1, do: "hold" } as const;

  // Long leases: only the test expires one.
  const relay = { roles: ["relay"], leaseMs: 600_000, at: untilSettling } as const;
  const stopped = harness.start(relay);
  await stopped.waitForReport("held"); // It has claimed and published, and settled nothing.
  stopped.signal("SIGSTOP");
  const { rowCount } = await harness.db.query(`update outbox_events set lease_until = clock_timestamp()`);
  expect(rowCount).toBe(10);

  // The other relay has claimed and published the same events, not settled them: the lease is its own now.
  const other = harness.start(relay);
  await other.waitForReport("held");
  const taken = await rows();
  expect(taken.every((row) => row.status === "IN_FLIGHT" && row.lease_epoch === 2n)).toBe(true);

  stopped.signal("SIGCONT");
  stopped.resume();
  expect(await stopped.waitForReport("leaseLost")).toEqual({ leaseLost: 10 });
  expect(await rows()).toEqual(taken);

  other.resume();
  expect(await other.waitForReport("leaseLost")).toEqual({ leaseLost: 0 });
  expect((await rows()).every((row) => row.status === "PUBLISHED" && row.attempt_count === 2)).toBe(true);

  // Each event was published twice, and takes effect once.
  harness.start({ roles: ["consumer"] });
  await expect.poll(async () => (await harness.effects()).length).toBe(10);
  expect(new Set((await harness.effects()).map((effect) => effect.event_id)).size).toBe(10);
});
