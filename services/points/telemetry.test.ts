import { hash } from "node:crypto";
import { memoryBus } from "@todoke/kernel/bus";
import { until } from "@todoke/kernel/testing";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, test } from "vitest";
import { start } from "./main.ts";

async function setup() {
  const t = await servicesDatabase(["points"]);
  const env = {
    DATABASE_URL: t.url,
    POINTS_PORT: "0",
    LOG_LEVEL: "silent",
    TODOKE_API_KEYS: `shop=points:write+read=${hash("sha256", "tdk_shop", "hex")}`,
  };
  return {
    db: t.open({ schema: "points" }),
    /** The service, as `todoke` starts it. */
    start: (roles = "api,maintenance,relay,scheduler,worker") =>
      start({ ...env, POINTS_ROLES: roles }, { openBus: async () => memoryBus() }),
    [Symbol.asyncDispose]: () => t[Symbol.asyncDispose](),
  };
}

type Service = Awaited<ReturnType<typeof start>>;

const send = async ({ url }: Service, [method, path, key]: readonly [string, string, string], body?: object) => {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      authorization: "Bearer tdk_shop",
      "idempotency-key": key,
      ...(body && { "content-type": "application/json" }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  return (await response.json()) as { id: string };
};

const readMetrics = async ({ opsUrl }: Service) => (await (await fetch(`${opsUrl}/metrics`)).text()).split("\n");

test("/metrics counts changes, reservations and grants by result", async () => {
  await using t = await setup();
  await using service = await t.start();
  const change = { user_id: "u_1", point_amount: 100 };
  await send(service, ["PUT", "/point/add", "key-1"], change);
  await send(service, ["POST", "/v1/points/additions", "key-1"], change);
  await send(service, ["PUT", "/point/add", "key-1"], { ...change, point_amount: 1 });
  await send(service, ["PUT", "/point/sub", "key-2"], change);
  await send(service, ["PUT", "/point/sub", "key-3"], change);
  await send(service, ["PUT", "/point/add", "key-4"], { ...change, expires_at: "2020-01-01T00:00:00Z" });
  const later = { ...change, execute_at: "2999-01-01T00:00:00Z" };
  const { id } = await send(service, ["POST", "/point/reserve", "key-5"], later);
  await send(service, ["DELETE", `/v1/points/reservations/${id}`, "key-6"]);
  await send(service, ["DELETE", `/v1/points/reservations/${id}`, "key-7"]);
  await send(service, ["POST", "/point/reserve", "key-8"], { ...change, execute_at: "2020-01-01T00:00:00Z" });
  await until("the due reservation is granted and counted", async () =>
    (await readMetrics(service)).includes("points_reservation_delay_seconds_count 1"),
  );
  expect(await readMetrics(service)).toEqual(
    expect.arrayContaining([
      'points_change_total{kind="ADD",result="applied"} 1',
      'points_change_total{kind="ADD",result="replayed"} 1',
      'points_change_total{kind="ADD",result="conflict"} 1',
      'points_change_total{kind="ADD",result="refused"} 1',
      'points_change_total{kind="SUB",result="applied"} 1',
      'points_change_total{kind="SUB",result="conflict"} 1',
      'points_reservation_total{action="reserve",result="applied"} 2',
      'points_reservation_total{action="cancel",result="applied"} 1',
      'points_reservation_total{action="cancel",result="conflict"} 1',
      // Measured from its creation, because its time was years ago.
      expect.stringMatching(/^points_reservation_delay_seconds_bucket\{le="300"\} 1$/),
      "points_outbox_failed_current 0",
      'todoke_inbox_dead_current{consumer="points"} 0',
    ]),
  );
});

test("/metrics shows the number and age of reservations that are due and not granted", async () => {
  await using t = await setup();
  const insert = `insert into point_reservations
    (id, user_id, point_amount, execute_at, status, sent_at, idempotency_key, request_hash, created_at)
    select uuidv7(), 'u', 1, now() - at, status, case status when 'PROCESSING' then now() - sent end, key,
           sha256(convert_to(key, 'utf8')), now() - age
      from (values ('1', interval '2 hours', 'PENDING', null::interval, interval '1 hour'),
                   ('2', interval '30 minutes', 'PENDING', null, interval '3 hours'),
                   ('3', interval '-1 hour', 'PENDING', null, interval '3 hours'),
                   ('4', interval '3 hours', 'PROCESSING', interval '10 minutes', interval '4 hours')
           ) r(key, at, status, sent, age)`;
  await t.db.query(insert);
  await using service = await t.start("maintenance");
  const lines = await readMetrics(service);
  expect(lines).toContain('points_reservation_backlog{status="due"} 2');
  expect(lines).toContain('points_reservation_backlog{status="processing"} 1');
  const age = Number(lines.find((line) => line.startsWith("points_reservation_backlog_age_seconds "))?.split(" ")[1]);
  expect(age).toBeGreaterThanOrEqual(3_600); // since the first was created, an hour after its time
  expect(age).toBeLessThan(7_200);
});
