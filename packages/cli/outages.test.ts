/** A bus that goes away and comes back, with real servers that are killed and started again. */
import { hash } from "node:crypto";
import { startEngine } from "@todoke/engines";
import { freePort, until } from "@todoke/kernel/testing";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, test } from "vitest";
import { openShell } from "./testing/command.ts";

interface Line {
  readonly msg: string;
}

test.each(["nats", "rabbitmq", "postgres"] as const)(
  "%s: an outage of the bus is logged once, its end once, and /readyz says degraded meanwhile",
  { timeout: 240_000 },
  async (kind) => {
    await using bus = await startEngine(kind);
    await using t = await servicesDatabase(["entitlement", "notification"]);
    await using shell = openShell("todoke");
    const port = await freePort();
    const serving = shell.start("serve entitlement notification", {
      DATABASE_URL: t.url,
      EVENT_BUS_URL: bus.url,
      ENTITLEMENT_PORT: String(port),
      NOTIFICATION_PORT: String(await freePort()),
      TODOKE_API_KEYS: `shop=entitlements:write=${hash("sha256", "tdk_shop", "hex")}`,
    });
    await serving.untilPrinted("notification   http");
    const readyz = async () => {
      const response = await fetch(`http://127.0.0.1:${port}/readyz`);
      const { status, checks } = (await response.json()) as { status: string; checks: { name: string; ok: boolean }[] };
      return `${response.status} ${status} ${checks.flatMap(({ name, ok }) => (ok ? [] : [name]))}`;
    };
    const grant = async (n: number) => {
      const response = await fetch(`http://127.0.0.1:${port}/v1/entitlements/grants`, {
        method: "POST",
        headers: {
          authorization: "Bearer tdk_shop",
          "idempotency-key": `k${n}`,
          "content-type": "application/json",
        },
        body: JSON.stringify({
          user_id: "u_1",
          stock_keeping_unit: `item${n}`,
          reason: "purchase",
          purchase_id: `p${n}`,
        }),
      });
      return response.status;
    };
    const failures = async () => {
      const metrics = await (await fetch(`http://127.0.0.1:${port + 1_000}/metrics`)).text();
      return Number(/^todoke_outbox_unavailable_total\{.*?\} (\d+)/m.exec(metrics)?.[1] ?? 0);
    };
    const sent = async () =>
      (await t.db.query(`select from notification.notifications where status = 'SENT'`)).rowCount;
    await until("it is ready", async () => (await readyz()) === "200 ready ");
    expect(await grant(1)).toBe(201);
    await until("the first user is notified", async () => (await sent()) === 1, { withinMs: 60_000 });

    // Twice on the server that starts the fastest.
    const outages = kind === "nats" ? 2 : 1;
    for (let n = 2; n < 2 + outages; n++) {
      await bus.kill();
      await until("it is degraded", async () => (await readyz()) === "200 degraded bus", { withinMs: 60_000 });
      // Commands are still accepted, and their events fail to be published more than once.
      expect(await grant(n)).toBe(201);
      const before = await failures();
      await until("attempts have failed", async () => (await failures()) >= before + 3, { withinMs: 60_000 });
      await bus.start();
      await until("it is ready again", async () => (await readyz()) === "200 ready ", { withinMs: 60_000 });
      await until("the user is notified", async () => (await sent()) === n, { withinMs: 60_000 });
    }

    serving.process.kill("SIGTERM");
    const { code, out } = await serving.ended;
    expect(code).toBe(0);
    const lines = out.split("\n").flatMap((line): Line[] => (line.startsWith("{") ? [JSON.parse(line)] : []));
    const about = lines.map(({ msg }) => msg).filter((msg) => !/^(Server listening|notification sent)/.test(msg));
    const gone = expect.stringMatching(/^\w+ at 127\.0\.0\.1:\d+.* is unavailable; this is logged once/);
    const back = expect.stringMatching(/^\w+ at 127\.0\.0\.1:\d+.* is available again after \d+ s$/);
    expect(about).toEqual(Array.from({ length: outages }, () => [gone, back]).flat());
    expect(out).not.toContain(new URL(bus.url).password || "tdk_shop");
  },
);
