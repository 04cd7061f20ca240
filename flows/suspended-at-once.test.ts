import { randomUUID } from "node:crypto";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { startAll } from "./all-services.ts";

/** One request, with when it was sent. */
interface Asked {
  readonly sentAt: number;
  readonly status: number;
}

test("no request that a suspended user sends after the suspension was answered succeeds, at any gateway", async () => {
  await using all = await startAll({ gateways: 2 });
  const [player, admin] = [await all.makeUser("player"), await all.makeUser("admin")];
  const adminToken = await all.openSession(admin);
  const act = async (name: string) => {
    const answer = await fetch(`${all.gateways[0]}/v1/admin/users/${player.userId}:${name}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${adminToken}`,
        "idempotency-key": randomUUID(),
        "content-type": "application/json",
      },
      body: JSON.stringify({ reason: "cheating" }),
    });
    expect(answer.status).toBe(200);
    return performance.now();
  };

  for (let round = 0; round < 5; round++) {
    const asked: Asked[] = [];
    let over = false;
    const token = await all.openSession(player);
    // The one that logs in anew is as busy as those who stay.
    const ask = async (url: string, path: string, bearer: () => string | Promise<string>) => {
      while (!over) {
        const authorization = `Bearer ${await bearer()}`;
        const sentAt = performance.now();
        const { status, body } = await fetch(url + path, { headers: { authorization } });
        await body?.cancel();
        asked.push({ sentAt, status });
      }
    };
    const busy = all.gateways.flatMap((url) => [
      ask(url, "/v1/me", () => token),
      ask(url, `/v1/users/${player.userId}/profile`, () => token),
      ask(url, "/v1/sessions", () => all.openSession(player)),
    ]);
    const succeeded = () => asked.filter(({ status }) => status === 200).length;
    await until("the player is busy", () => succeeded() > 20);
    const suspendedAt = await act("suspend");
    const after = () => asked.filter(({ sentAt }) => sentAt > suspendedAt);
    const isRefused = ({ status }: Asked) => status === 401 || status === 403;
    await until("the player has tried again and again", () => after().filter(isRefused).length > 30);
    over = true;
    await Promise.all(busy);

    // "Later" is no success: a busy machine may say so.
    expect(after().filter((each) => !isRefused(each) && each.status < 500)).toEqual([]);
    await act("reinstate");
    const again = await fetch(`${all.gateways[1]}/v1/me`, {
      headers: { authorization: `Bearer ${await all.openSession(player)}` },
    });
    expect(again.status).toBe(200);
  }
});
