/** The client against a real service, while its connection is cut at every byte of request and answer. */
import { hash } from "node:crypto";
import { createClient } from "@todoke/client";
import { memoryBus } from "@todoke/kernel/bus";
import { openFaultProxy } from "@todoke/kernel/testing";
import * as points from "@todoke/points";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, test } from "vitest";

const apiKey = "tdk_wire";
const user_id = "u_wire";
/** Cuts side by side, each at a proxy of its own. */
const lanes = 6;

test("a wire that is cut at every byte of request and answer leaves one effect for each command", async () => {
  await using t = await servicesDatabase(["points"]);
  const env = {
    DATABASE_URL: t.url,
    LOG_LEVEL: "silent",
    POINTS_PORT: "0",
    TODOKE_API_KEYS: `wire=points:write+read=${hash("sha256", apiKey, "hex")}`,
  };
  await using service = await points.start(env, { openBus: async () => memoryBus() });

  /** Cuts at each lanes-th byte, until the call ends before the cut. Returns the commands that succeeded. */
  async function cutEverywhere(direction: "request" | "answer", first: number): Promise<number> {
    await using proxy = await openFaultProxy(service.url);
    const url = new URL(proxy.url).origin;
    const todoke = createClient({
      services: { points: url },
      apiKey,
      retryBaseMs: 1,
      deadlineMs: 120_000,
      tryMs: 60_000,
    });
    let commands = 0;
    for (let byte = first; ; byte += lanes) {
      const isWaiting = proxy.cutAfter(byte, direction);
      const call = todoke.points.add(
        { user_id, point_amount: 1n },
        { key: `${direction}-${String(byte).padStart(5, "0")}` },
      );
      const { attempts, replayed } = await call.withResponse();
      commands++;
      if (isWaiting()) return commands;
      expect([direction, byte, attempts, replayed]).toEqual([direction, byte, 2, direction === "answer"]);
    }
  }

  for (const direction of ["request", "answer"] as const) {
    const counts = await Promise.all(Array.from({ length: lanes }, (_, first) => cutEverywhere(direction, first)));
    const commands = counts.reduce((sum, count) => sum + count, 0);
    expect(commands).toBeGreaterThan(300); // The bytes of a request, or of an answer.
    const { rows } = await t.db.query(
      `select count(*)::int as effects, sum(point_amount)::int as points from points.point_transactions
        where idempotency_key like '%' || $1 || '%'`,
      [direction],
    );
    expect(rows).toEqual([{ effects: commands, points: commands }]);
  }
});
