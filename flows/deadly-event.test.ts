import { listDeadEvents } from "@todoke/kernel/inbox";
import { expect, test } from "vitest";
import { busKinds, consumer } from "./buses.ts";
import { createHarness } from "./harness.ts";

test.each(busKinds)(
  "%s: an event whose handler kills the process ends in the DLQ, and the others flow past it",
  { timeout: 300_000 },
  async (kind) => {
    await using harness = await createHarness(kind);
    await harness.append(30, 30, (n) => (n === 7 ? { deadly: true } : {}));

    let deaths = 0;
    let over = false;
    // As an orchestrator would: whenever it dies, it is started again.
    const supervisor = (async () => {
      while (!over) {
        const running = harness.start({ attemptsMax: 3 });
        await running.exited;
        if (!over) deaths++;
      }
    })();

    // Four processes one after the other, each of which takes its time to start on a busy machine.
    await expect
      .poll(async () => (await listDeadEvents(harness.db, { consumer })).length, { timeout: 180_000, interval: 100 })
      .toBe(1);
    await expect.poll(async () => (await harness.effects()).length).toBe(29);
    over = true;
    const [dead] = await listDeadEvents(harness.db, { consumer });
    expect(dead?.aggregateKey).toBe("aggregate-7");
    expect(dead?.lastError).toMatch(/failed after 3 attempts/);
    expect(deaths).toBeGreaterThanOrEqual(3);
    await harness[Symbol.asyncDispose]();
    await supervisor;
  },
);
