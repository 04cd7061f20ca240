import { expect, test } from "vitest";
import { busKinds } from "./buses.ts";
import { createHarness } from "./harness.ts";

test.each(busKinds)(
  "%s: nothing counts that a relay does after it stood still past its lease and another took over",
  async (kind) => {
    await using stage = await createHarness(kind);
    await stage.append(10, 10);
    const rows = async () =>
      (
        await stage.db.query(
          `select event_id, status, lease_epoch, attempt_count, locked_by, published_at from outbox_events order by position`,
        )
      ).rows;
    const untilSettling = { point: "published", nth: 1, do: "hold" } as const;

    // Neither lease ends by itself: a claim whose answer took longer than the lease would be let go of.
    const relay = { roles: ["relay"], leaseMs: 600_000, at: untilSettling } as const;
    const stopped = stage.start(relay);
    await stopped.reports("held"); // It has claimed and published, and settled nothing.
    stopped.signal("SIGSTOP");
    const { rowCount } = await stage.db.query(`update outbox_events set lease_until = clock_timestamp()`);
    expect(rowCount).toBe(10);

    // The other has claimed and published the same events, and has not settled them either: the lease is its own now.
    const other = stage.start(relay);
    await other.reports("held");
    const taken = await rows();
    expect(taken.every((row) => row.status === "IN_FLIGHT" && row.lease_epoch === 2n)).toBe(true);

    stopped.signal("SIGCONT");
    stopped.go();
    expect(await stopped.reports("leaseLost")).toEqual({ leaseLost: 10 });
    expect(await rows()).toEqual(taken);

    other.go();
    expect(await other.reports("leaseLost")).toEqual({ leaseLost: 0 });
    expect((await rows()).every((row) => row.status === "PUBLISHED" && row.attempt_count === 2)).toBe(true);

    // Each event was published twice, and takes effect once.
    stage.start({ roles: ["consumer"] });
    await expect.poll(async () => (await stage.effects()).length).toBe(10);
    expect(new Set((await stage.effects()).map((effect) => effect.event_id)).size).toBe(10);
  },
);
