import { fixedId } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { alice, bearerOf, bob, setup } from "../testing.ts";
import { hangingUp, refusing } from "../upstreams/testing.ts";

const base = `/v1/points/users/${alice}`;

/** Every read, with all that it can be asked. */
const reads = [
  `${base}/balance`,
  `${base}/balance?at=2026-01-15T10%3A00%3A00%2B09%3A00`,
  `${base}/statement?kind=SUB&source=shop&source_id=o_1&from=2026-01-01T00%3A00%3A00Z&to=2026-02-01T00%3A00%3A00Z&limit=5&cursor=abc`,
  `${base}/expiring?within_days=7&limit=5&cursor=abc`,
  `${base}/reservations?status=PENDING&limit=5&cursor=abc`,
  `/users/${alice}/reserved-points?limit=5&cursor=abc`,
];

test("reads of points are forwarded and returned to the last digit", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  const body = '{"balance":9223372036854775807,"held":9007199254740993}';
  t.services.points.setBehaviour((response) => void response.setHeader("content-type", "application/json").end(body));
  for (const url of reads) {
    const answer = await app.inject({ url, headers: player.headers });
    expect([url, answer.statusCode, answer.body]).toEqual([url, 200, body]);
  }
  const { received } = t.services.points;
  expect(received.map(({ method, path }) => [method, path])).toEqual(reads.map((url) => ["GET", url]));
  for (const one of received) expect(await bearerOf("points", one)).toMatchObject({ name: `user:${alice}` });
});

test("no player reads another's points, staff does, and bad queries are not forwarded", async () => {
  await using t = await setup();
  const app = await t.process();
  const [player, other] = [await t.logIn(alice), await t.logIn(bob)];
  const viewer = await t.logIn(fixedId(3), { roles: ["USER", "VIEWER"] });
  for (const url of reads) {
    expect((await app.inject({ url })).statusCode).toBe(401);
    expect((await app.inject({ url, headers: other.headers })).statusCode).toBe(403);
    expect((await app.inject({ url, headers: viewer.headers })).statusCode).toBe(200);
  }
  const forwarded = t.services.points.received.length;
  for (const url of [
    `${base}/balance?at=yesterday`,
    `${base}/balance?user_id=${bob}`,
    `${base}/statement?kind=sub`,
    `${base}/statement?limit=0`,
    `${base}/expiring?within_days=3651`,
    `${base}/reservations?status=done`,
  ])
    expect([url, (await app.inject({ url, headers: player.headers })).statusCode]).toEqual([url, 400]);
  expect(t.services.points.received).toHaveLength(forwarded);
});

test("players cannot change points", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  const headers = { ...player.headers, "idempotency-key": "key-1" };
  const payload = { user_id: alice, point_amount: 100 };
  for (const [method, url] of [
    ["PUT", "/point/add"],
    ["PUT", "/point/sub"],
    ["POST", "/point/reserve"],
    ["POST", "/v1/points/additions"],
    ["POST", "/v1/points/holds"],
    ["POST", "/v1/points/reservations"],
  ] as const)
    expect([url, (await app.inject({ method, url, headers, payload })).statusCode]).toEqual([url, 404]);
  expect(t.services.points.received).toEqual([]);
});

test("refusals of points are passed on, and its failures name it", async () => {
  await using t = await setup();
  const [app, without] = [await t.process(), await t.process({ without: ["points"] })];
  const { headers } = await t.logIn(alice);
  const ask = async (from: typeof app) => (await from.inject({ url: `${base}/balance`, headers })).json();
  t.services.points.setBehaviour(refusing(400, "invalid-request"));
  expect(await ask(app)).toMatchObject({ status: 400, code: "invalid-request", detail: "not like this" });
  t.services.points.setBehaviour(hangingUp);
  expect(await ask(app)).toMatchObject({ status: 502, code: "POINTS_BAD_GATEWAY" });
  expect(await ask(without)).toMatchObject({ status: 503, code: "POINTS_UNAVAILABLE" });
});
