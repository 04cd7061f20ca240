import { randomUUID } from "node:crypto";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { startAll } from "./all-services.ts";

interface SentRequest {
  readonly sentAt: number;
  readonly status: number;
}

test("no request of a suspended user succeeds after the suspension's response, at any gateway", async () => {
  await using all = await startAll({ gateways: 2 });
  const [player, admin] = [await all.createUser("player"), await all.createUser("admin")];
  const adminToken = await all.openSession(admin);
  const act = async (name: string) => {
    const response = await fetch(`${all.gateways[0]}/v1/admin/users/${player.userId}:${name}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${adminToken}`,
        "idempotency-key": randomUUID(),
        "content-type": "application/json",
      },
      body: JSON.stringify({ reason: "cheating" }),
    });
    expect(response.status).toBe(200);
    return performance.now();
  };

  for (let round = 0; round < 5; round++) {
    const requests: SentRequest[] = [];
    let isStopping = false;
    const token = await all.openSession(player);
    // One sender per gateway logs in for every request.
    const sendRequests = async (url: string, path: string, bearer: () => string | Promise<string>) => {
      while (!isStopping) {
        const authorization = `Bearer ${await bearer()}`;
        const sentAt = performance.now();
        const { status, body } = await fetch(url + path, { headers: { authorization } });
        await body?.cancel();
        requests.push({ sentAt, status });
      }
    };
    const senders = all.gateways.flatMap((url) => [
      sendRequests(url, "/v1/me", () => token),
      sendRequests(url, `/v1/users/${player.userId}/profile`, () => token),
      sendRequests(url, "/v1/sessions", () => all.openSession(player)),
    ]);
    const succeeded = () => requests.filter(({ status }) => status === 200).length;
    await until("the player sends requests", () => succeeded() > 20);
    const suspendedAt = await act("suspend");
    const after = () => requests.filter(({ sentAt }) => sentAt > suspendedAt);
    const isRejected = ({ status }: SentRequest) => status === 401 || status === 403;
    await until("30 requests were rejected", () => after().filter(isRejected).length > 30);
    isStopping = true;
    await Promise.all(senders);

    // A 503 of a busy machine is no success.
    expect(after().filter((each) => !isRejected(each) && each.status < 500)).toEqual([]);
    await act("reinstate");
    const afterReinstatement = await fetch(`${all.gateways[1]}/v1/me`, {
      headers: { authorization: `Bearer ${await all.openSession(player)}` },
    });
    expect(afterReinstatement.status).toBe(200);
  }
});
