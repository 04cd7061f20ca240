import { expect, test } from "vitest";
import { type RunBatchesOptions, runBatches } from "./index.ts";

/** Runs batches of at most 10 over `rows`, and returns how many rows were handled, in how many batches. */
async function run(rows: number, options: Partial<RunBatchesOptions> = {}) {
  let [left, batches] = [rows, 0];
  const batch = async () => {
    batches++;
    const handled = Math.min(left, 10);
    left -= handled;
    return handled;
  };
  return { handled: await runBatches(batch, { batchMax: 10, ...options }), batches };
}

test("batches run until one is not full", async () => {
  expect(await run(0)).toEqual({ handled: 0, batches: 1 });
  expect(await run(9)).toEqual({ handled: 9, batches: 1 });
  expect(await run(25)).toEqual({ handled: 25, batches: 3 });
});

test("batches end at their limit and at a stop", async () => {
  expect(await run(100, { batchesMax: 4 })).toEqual({ handled: 40, batches: 4 });
  expect(await run(100, { stopping: AbortSignal.abort() })).toEqual({ handled: 10, batches: 1 });
});
