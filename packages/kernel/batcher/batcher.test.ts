import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { CommitUnknown } from "../db/index.ts";
import { repetitions } from "../testing/index.ts";
import { createBatcher } from "./index.ts";

/** A `run` whose batches the test finishes. */
function controlledRun<Request>() {
  const batches: {
    requests: readonly Request[];
    finish: (results?: readonly (string | Error)[]) => void;
    fail: (e: Error) => void;
  }[] = [];
  const run = (requests: readonly Request[]) =>
    new Promise<readonly (string | Error)[]>((resolve, reject) => {
      batches.push({ requests, finish: (results = requests.map(String)) => resolve(results), fail: reject });
    });
  return { batches, run };
}

test("a single request starts at once, and those that arrive while it runs share the next batch", async () => {
  const controlled = controlledRun<string>();
  const submit = createBatcher({ run: controlled.run });
  const results = [submit("a")];
  await turn();
  results.push(submit("b"), submit("c"), submit("d"));
  await turn();
  expect(controlled.batches.map((b) => b.requests)).toEqual([["a"]]);
  controlled.batches[0]?.finish();
  await results[0];
  await turn();
  expect(controlled.batches.map((b) => b.requests)).toEqual([["a"], ["b", "c", "d"]]);
  controlled.batches[1]?.finish();
  expect(await Promise.all(results)).toEqual(["a", "b", "c", "d"]);
});

test("requests with a common conflict key never share a batch and keep their order", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ keys: fc.array(fc.constantFrom("x", "y", "z"), { maxLength: 3 }), id: fc.nat() }), {
        maxLength: 60,
      }),
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 8 }),
      async (requests, concurrency, batchMax) => {
        const done: typeof requests = [];
        const running = new Set<string>();
        const most = { requests: 0, batches: 0 };
        let batches = 0;
        let isShared = false;
        const submit = createBatcher<(typeof requests)[number], string>({
          concurrency: concurrency,
          batchMax,
          conflictKeys: (request) => request.keys,
          run: async (batch) => {
            // Asserted at the end: an error thrown here would count as a failed batch and be run again.
            most.requests = Math.max(most.requests, batch.length);
            most.batches = Math.max(most.batches, ++batches);
            const keys = batch.flatMap((request) => [...new Set(request.keys)]);
            for (const key of keys) {
              isShared ||= running.has(key);
              running.add(key);
            }
            await turn();
            batches--;
            for (const key of keys) running.delete(key);
            done.push(...batch);
            return batch.map(() => "ok");
          },
        });
        await Promise.all(requests.map(submit));
        expect(isShared).toBe(false);
        expect(most.requests).toBeLessThanOrEqual(batchMax);
        expect(most.batches).toBeLessThanOrEqual(concurrency);
        for (const key of ["x", "y", "z"] as const) {
          const withKey = (list: typeof requests) => list.filter((request) => request.keys.includes(key));
          expect(withKey(done)).toEqual(withKey(requests));
        }
      },
    ),
    { numRuns: repetitions(200) },
  );
});

test("a bad request fails alone, and the others of its batch are executed once", async () => {
  const committed: string[] = [];
  const submit = createBatcher<string, string>({
    run: async (batch) => {
      if (batch.includes("bad"))
        throw Object.assign(new Error("value out of range"), { code: "22003", severity: "ERROR" });
      committed.push(...batch);
      return batch.map((each) => each.toUpperCase());
    },
  });
  const results = await Promise.allSettled(["a", "bad", "b"].map(submit));
  expect(results.map((r) => (r.status === "fulfilled" ? r.value : String(r.reason)))).toEqual([
    "A",
    "Error: value out of range",
    "B",
  ]);
  expect(committed).toEqual(["a", "b"]);
});

test("an Error among the results fails its request and no other", async () => {
  const submit = createBatcher<string, string>({
    run: async (batch) => batch.map((each) => (each === "bad" ? new Error("no") : each)),
  });
  const results = await Promise.allSettled(["a", "bad"].map(submit));
  expect(results.map((r) => r.status)).toEqual(["fulfilled", "rejected"]);
});

test.each(["connection terminated", "write EPROTO"])(
  "a batch whose commit is unknown (%s) is not run again",
  async (message) => {
    let runs = 0;
    const submit = createBatcher<string, string>({
      run: async () => {
        runs++;
        throw new CommitUnknown(new Error(message));
      },
    });
    const results = await Promise.allSettled(["a", "b", "c"].map(submit));
    expect(results.every((r) => r.status === "rejected" && r.reason instanceof CommitUnknown)).toBe(true);
    expect(runs).toBe(1);
  },
);

test("a request that lost its key to another process is run again up to three times", async () => {
  let races = 0;
  const submit = createBatcher<string, string>({
    run: async (batch) => {
      if (races-- > 0) throw Object.assign(new Error("duplicate key"), { code: "23505", severity: "ERROR" });
      return batch.map(() => "replayed");
    },
  });
  for (races of [1, 3]) expect(await submit("a")).toBe("replayed");
  races = 4;
  await expect(submit("a")).rejects.toThrow("duplicate key");
});

test("a request beyond the queue limit is rejected at once with Retry-After", async () => {
  const controlled = controlledRun<number>();
  const submit = createBatcher({ run: controlled.run, queueMax: 3 });
  const waiting = [1, 2, 3].map(submit);
  await expect(submit(4)).rejects.toMatchObject({ code: "overloaded", status: 503, retryAfterSeconds: 1 });
  await turn();
  controlled.batches[0]?.finish();
  expect(await Promise.all(waiting)).toEqual(["1", "2", "3"]);
  void submit(5);
  await turn();
  expect(controlled.batches.length).toBe(2); // There is room again.
  controlled.batches[1]?.finish();
});

test("a batch that fails because the database is unavailable is not run again", async () => {
  let runs = 0;
  const submit = createBatcher<string, string>({
    run: async () => {
      runs++;
      throw Object.assign(new Error("connection refused"), { code: "ECONNREFUSED" });
    },
  });
  const results = await Promise.allSettled(["a", "b", "c"].map(submit));
  expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  expect(runs).toBe(1);
});
