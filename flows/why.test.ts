/** `why`, over all services: every look-up reads an index, and the stories of an operator get the right sentence. */

import { randomUUIDv7 } from "node:crypto";
import * as account from "@todoke/account";
import * as entitlement from "@todoke/entitlement";
import * as gateway from "@todoke/gateway-bff";
import { until } from "@todoke/kernel/testing";
import * as matchmaking from "@todoke/matchmaking";
import * as notification from "@todoke/notification";
import * as orders from "@todoke/orders";
import * as points from "@todoke/points";
import { servicesDatabase } from "@todoke/service/testing";
import type { Explanation, Lookup } from "@todoke/service/why";
import { expect, test } from "vitest";
import { apiKeyFor, startAll, tokenFor } from "./all-services.ts";

const services: Readonly<Record<string, { readonly why: readonly Lookup[] }>> = {
  account,
  entitlement,
  gateway_bff: gateway,
  matchmaking,
  notification,
  orders,
  points,
};

interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Cond"?: string;
  readonly Plans?: readonly Plan[];
}

const scansOf = (plan: Plan): readonly Plan[] => [
  ...(plan["Relation Name"] ? [plan] : []),
  ...(plan.Plans ?? []).flatMap(scansOf),
];

const samples = {
  uuid: "0190f3c2-7a3b-7c1e-9f00-8a6b2c4d5e6f",
  hex32: "0190f3c27a3b7c1e9f008a6b2c4d5e6f",
  number: "17",
  email: "Aki@example.com",
  aggregate: "u_1@1730000000000",
  entitlement: "u_1/item1@3",
  text: "u_1",
} as const;

test("every look-up of every service finds its rows by an index", async () => {
  await using t = await servicesDatabase();
  const walks: string[] = [];
  for (const [schema, { why }] of Object.entries(services)) {
    const db = t.open({ schema });
    expect(why.length).toBeGreaterThan(1);
    for (const { by, shape, sql } of why) {
      const { rows } = await db.query<{ "QUERY PLAN": readonly [{ readonly Plan: Plan }] }>(
        `explain (format json, generic_plan) ${sql}`,
      );
      const scans = scansOf((rows[0]?.["QUERY PLAN"] ?? JSON.parse(""))[0].Plan);
      expect(scans.length, sql).toBeGreaterThan(0);
      for (const scan of scans)
        if (!scan["Node Type"].startsWith("Index") || !scan["Index Cond"])
          walks.push(`${schema} ${by}: ${scan["Node Type"]} of ${scan["Relation Name"]}`);
      await db.query(sql, [samples[shape]]);
    }
  }
  // The first scope of all: the beginning of the index, and no condition.
  const first = /idempotency_keys$/;
  expect(walks.filter((walk) => !first.test(walk))).toEqual([]);
});

test("staff sees a purchase from its key to the notification, through the gateway; a player is rejected", async () => {
  await using t = await startAll();
  const [gatewayUrl = ""] = t.gateways;
  const urlOf = (name: string) => t.running.find((each) => each.name === name)?.url;
  const grant = (key: string, headers: Readonly<Record<string, string>> = {}) =>
    fetch(`${urlOf("entitlement")}/v1/entitlements/grants`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${apiKeyFor("entitlements:write")}`,
        "idempotency-key": key,
        "content-type": "application/json",
        ...headers,
      },
      body: JSON.stringify({ user_id: "u_1", stock_keeping_unit: key, reason: "purchase", purchase_id: key }),
    });
  const granted = await grant("purchase-1");
  expect(granted.status).toBe(201);
  const [admin, player] = [await t.createUser("admin"), await t.createUser("player")];
  const token = await t.openSession(admin);
  const ask = (id: string, session = token) =>
    fetch(`${gatewayUrl}/v1/admin/why/${encodeURIComponent(id)}`, { headers: { authorization: `Bearer ${session}` } });
  const explain = async (id: string) => (await (await ask(id)).json()) as Explanation;

  await until("the gateway knows the role", async () => (await ask("x")).status === 200);
  // Not always the last entry: a relay that was slow to settle records "published" after the notification was sent.
  const sentIn = ({ entries }: Explanation) => entries.find(({ kind }) => kind === "sent");
  await until("the notification is sent", async () => sentIn(await explain("purchase-1")) !== undefined);
  const purchase = await explain("purchase-1");
  expect(purchase.outcome).toBe("done");
  expect(purchase.sentence).toMatch(
    /^The request with the key purchase-1 was answered with 201 at .*; the notification .* was sent at /,
  );
  expect(purchase.entries.map(({ service, kind }) => `${service} ${kind}`)).toEqual(
    expect.arrayContaining([
      "entitlement request",
      "entitlement commit",
      "entitlement published",
      "notification processed",
    ]),
  );
  expect(purchase.parts.filter(({ status }) => status === "failed")).toEqual([]);
  // The id of a request leads to what it did, also in a trace of its caller and under an id of its caller.
  const sent = sentIn(purchase)?.id;
  const requestId = granted.headers.get("x-request-id") ?? "";
  expect((await explain(requestId)).entries.map(({ id }) => id)).toContain(sent);
  expect(await explain(requestId)).toMatchObject({ outcome: "done" });
  const traceparent = `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01`;
  const traced = await grant("purchase-2", { traceparent });
  const own = `${randomUUIDv7()}`;
  const named = await grant("purchase-3", { "x-request-id": own.toUpperCase() });
  for (const [response, key] of [
    [traced, "purchase-2"],
    [named, "purchase-3"],
  ] as const) {
    const about = await explain(response.headers.get("x-request-id") ?? "");
    expect(about.entries.find(({ kind }) => kind === "event")?.detail).toContain(`u_1/${key}`);
  }
  const refused = await grant("");
  expect(refused.status).toBe(400);
  const { instance } = (await refused.json()) as { instance: string };
  expect(await explain(instance)).toMatchObject({
    outcome: "unknown",
    sentence: expect.stringContaining("if it is the id of a request, that request wrote no event"),
  });

  const [traceId] = purchase.entries.flatMap(({ trace_id }) => trace_id ?? []);
  expect((await explain(traceId ?? "")).entries.map(({ id }) => id)).toContain(sentIn(purchase)?.id);
  expect((await explain(admin.userId)).sentence).toMatch(/^The user .* is ACTIVE; nothing of theirs failed or waits\./);

  const ofService = async (query: string, role: "USER" | "VIEWER") => {
    const token = await tokenFor("entitlement", { userId: "u_9", roles: [role] });
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`${urlOf("entitlement")}/v1/admin/why/purchase-1${query}`, { headers })).status;
  };
  const links = (count: number) => `?links=${Array(count).fill("event:x").join("%20")}`;
  expect(
    await Promise.all(
      ["", links(12), links(13), "?links=x", "?links=planet:x"].map((query) => ofService(query, "VIEWER")),
    ),
  ).toEqual([200, 200, 400, 400, 400]);
  expect(await ofService("", "USER")).toBe(403);
  expect((await ask("purchase-1", await t.openSession(player))).status).toBe(403);
  expect((await ask("x".repeat(400))).status).toBe(400);
  expect(await explain("no such thing %")).toMatchObject({ outcome: "unknown", id: "no such thing %" });
});
