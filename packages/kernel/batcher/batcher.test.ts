import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { CommitUnknown } from "../db/index.ts";
import { gather } from "./index.ts";

/** A lane that can be held: each batch waits until it is let go. */
function held<Request>() {
  const batches: {
    requests: readonly Request[];
    finish: (answers?: readonly (string | Error)[]) => void;
    fail: (e: Error) => void;
  }[] = [];
  const run = (requests: readonly Request[]) =>
    new Promise<readonly (string | Error)[]>((resolve, reject) => {
      batches.push({ requests, finish: (answers = requests.map(String)) => resolve(answers), fail: reject });
    });
  return { batches, run };
}

test("a lone request starts at once, and those that come while it runs go together next", async () => {
  const lane = held<string>();
  const submit = gather({ run: lane.run });
  const answers = [submit("a")];
  await turn();
  answers.push(submit("b"), submit("c"), submit("d"));
  await turn();
  expect(lane.batches.map((b) => b.requests)).toEqual([["a"]]);
  lane.batches[0]?.finish();
  await answers[0];
  await turn();
  expect(lane.batches.map((b) => b.requests)).toEqual([["a"], ["b", "c", "d"]]);
  lane.batches[1]?.finish();
  expect(await Promise.all(answers)).toEqual(["a", "b", "c", "d"]);
});

test("requests that touch the same thing never share a batch and keep their order", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ touches: fc.array(fc.constantFrom("x", "y", "z"), { maxLength: 3 }), id: fc.nat() }), {
        maxLength: 60,
      }),
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 8 }),
      async (requests, lanes, batchMax) => {
        const done: typeof requests = [];
        const running = new Set<string>();
        const most = { requests: 0, batches: 0 };
        let batches = 0;
        let isShared = false;
        const submit = gather<(typeof requests)[number], string>({
          lanes,
          batchMax,
          touches: (request) => request.touches,
          run: async (batch) => {
            // Checked at the end: what throws in here is taken for a batch that failed, and run again.
            most.requests = Math.max(most.requests, batch.length);
            most.batches = Math.max(most.batches, ++batches);
            const touched = batch.flatMap((request) => [...new Set(request.touches)]);
            for (const thing of touched) {
              isShared ||= running.has(thing);
              running.add(thing);
            }
            await turn();
            batches--;
            for (const thing of touched) running.delete(thing);
            done.push(...batch);
            return batch.map(() => "ok");
          },
        });
        await Promise.all(requests.map(submit));
        expect(isShared).toBe(false);
        expect(most.requests).toBeLessThanOrEqual(batchMax);
        expect(most.batches).toBeLessThanOrEqual(lanes);
        for (const thing of ["x", "y", "z"] as const) {
          const of = (list: typeof requests) => list.filter((request) => request.touches.includes(thing));
          expect(of(done)).toEqual(of(requests));
        }
      },
    ),
    { numRuns: 200 },
  );
});

test("one bad request fails alone: the others of its batch are carried out, each once", async () => {
  const committed: string[] = [];
  const submit = gather<string, string>({
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

test("an error in a place of the answers fails that request and no other", async () => {
  const submit = gather<string, string>({
    run: async (batch) => batch.map((each) => (each === "bad" ? new Error("no") : each)),
  });
  const results = await Promise.allSettled(["a", "bad"].map(submit));
  expect(results.map((r) => r.status)).toEqual(["fulfilled", "rejected"]);
});

test.each(["connection terminated", "write EPROTO"])(
  "a batch whose commit is unknown (%s) is not run again, and every caller is told so",
  async (why) => {
    let runs = 0;
    const submit = gather<string, string>({
      run: async () => {
        runs++;
        throw new CommitUnknown(new Error(why));
      },
    });
    const results = await Promise.allSettled(["a", "b", "c"].map(submit));
    expect(results.every((r) => r.status === "rejected" && r.reason instanceof CommitUnknown)).toBe(true);
    expect(runs).toBe(1);
  },
);

test("a request that lost its key to another process is run again, three times alone, and finds what the other wrote", async () => {
  let races = 0;
  const submit = gather<string, string>({
    run: async (batch) => {
      if (races-- > 0) throw Object.assign(new Error("duplicate key"), { code: "23505", severity: "ERROR" });
      return batch.map(() => "replayed");
    },
  });
  for (races of [1, 3]) expect(await submit("a")).toBe("replayed");
  races = 4;
  await expect(submit("a")).rejects.toThrow("duplicate key");
});

test("past the bound of waiting callers the next is refused at once, with when to come back", async () => {
  const lane = held<number>();
  const submit = gather({ run: lane.run, waitingMax: 3 });
  const waiting = [1, 2, 3].map(submit);
  await expect(submit(4)).rejects.toMatchObject({ code: "overloaded", status: 503, retryAfterSeconds: 1 });
  await turn();
  lane.batches[0]?.finish();
  expect(await Promise.all(waiting)).toEqual(["1", "2", "3"]);
  void submit(5);
  await turn();
  expect(lane.batches.length).toBe(2); // there is room again
  lane.batches[1]?.finish();
});

test("a batch that fails because the database is unavailable is not run again request by request", async () => {
  let runs = 0;
  const submit = gather<string, string>({
    run: async () => {
      runs++;
      throw Object.assign(new Error("nobody there"), { code: "ECONNREFUSED" });
    },
  });
  const results = await Promise.allSettled(["a", "b", "c"].map(submit));
  expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  expect(runs).toBe(1);
});
