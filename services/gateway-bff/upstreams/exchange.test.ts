import type { Dispatcher } from "undici";
import { expect, test } from "vitest";
import { exchange, NoResponseError } from "./exchange.ts";

test("a connection that opens after the timeout sends nothing", async () => {
  let handler: Dispatcher.DispatchHandler = {};
  // No connection yet: nothing is received of the request.
  const pool = {
    dispatch(_options: unknown, given: Dispatcher.DispatchHandler) {
      handler = given;
      return true;
    },
  };
  const asked = exchange(pool, { method: "POST", path: "/", headers: {}, body: "{}", timeoutMs: 5 });
  await expect(asked).rejects.toEqual(expect.objectContaining({ name: "NoResponseError", reason: "late" }));
  const aborted: Error[] = [];
  handler.onRequestStart?.({ abort: (why: Error) => aborted.push(why) } as never, {});
  expect(aborted).toEqual([expect.any(NoResponseError)]);
});
