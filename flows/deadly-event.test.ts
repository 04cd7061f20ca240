import { inboxDeadLetters } from "@todoke/kernel/inbox";
import { expect, test } from "vitest";
import { busKinds, consumer } from "./buses.ts";
import { createHarness } from "./harness.ts";

const deadLetters = inboxDeadLetters(consumer);

test.each(busKinds)(
  "%s: an event whose handler kills the process is dead-lettered; the others take effect",
  { timeout: 300_000 },
  async (kind) => {
    await using harness = await createHarness(kind);
    await harness.append(30, 30, (n) => (n === 7 ? { deadly: true } : {}));

    let deaths = 0;
    let isStopping = false;
    // Restarts the process whenever it dies, as an orchestrator does.
    const supervisor = (async () => {
      while (!isStopping) {
        const running = harness.start({ attemptsMax: 3 });
        await running.exited;
        if (!isStopping) deaths++;
      }
    })();

    // Four processes start one after the other, slowly on a busy machine.
    await expect.poll(async () => await deadLetters.count(harness.db), { timeout: 180_000, interval: 100 }).toBe(1);
    await expect.poll(async () => (await harness.effects()).length).toBe(29);
    isStopping = true;
    const [dead] = await deadLetters.list(harness.db, { limit: 10 });
    expect(dead?.about).toBe("aggregate-7");
    expect(dead?.last_error).toMatch(/failed after 3 attempts/);
    expect(deaths).toBeGreaterThanOrEqual(3);
    await harness[Symbol.asyncDispose]();
    await supervisor;
  },
);
