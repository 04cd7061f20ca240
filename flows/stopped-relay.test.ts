import { expect, test } from "vitest";
import { busKinds } from "./buses.ts";
import { setStage } from "./stage.ts";

test.each(busKinds)(
  "%s: nothing counts that a relay does after it stood still past its lease and another took over",
  async (kind) => {
    await using stage = await setStage(kind);
    await stage.append(10, 10);

    const stopped = stage.start({ roles: ["relay"], at: { point: "published", nth: 1, do: "hold" } });
    await stopped.reports("held"); // It has claimed and published, and settled nothing.
    stopped.signal("SIGSTOP");

    const other = stage.start();
    await stage.untilPublished();
    await expect.poll(async () => (await stage.effects()).length).toBe(10);
    const settled = async () =>
      (
        await stage.db.query(
          `select event_id, status, lease_epoch, attempt_count, published_at from outbox_events order by position`,
        )
      ).rows;
    const before = await settled();
    expect(before.every((row) => row.lease_epoch === 2n)).toBe(true);

    stopped.signal("SIGCONT");
    stopped.go();
    expect(await stopped.reports("leaseLost")).toEqual({ leaseLost: 10 });
    expect(await settled()).toEqual(before);
    expect((await stage.effects()).length).toBe(10);
    other.signal("SIGTERM");
  },
);
