import { expect, test } from "vitest";
import { most, setup } from "./testing.ts";

async function setupHold(point_amount: unknown = 40, more: object = {}) {
  const t = await setup();
  await t.put("/point/add", { key: "add", body: { user_id: "u_1", point_amount: 100 } });
  const hold = await t.post("/v1/points/holds", { key: "hold", body: { user_id: "u_1", point_amount, ...more } });
  const id = hold.json.hold_id;
  const act = (name: "capture" | "release", key: string, body?: object) =>
    t.post(`/v1/points/holds/${id}/${name}`, { key, body });
  return { ...t, hold, id, act, show: async () => (await t.get(`/v1/points/holds/${id}`)).json };
}

test("points are held for 15 minutes by default and cannot be spent", async () => {
  await using t = await setupHold();
  expect([t.hold.status, t.hold.json]).toMatchObject([
    201,
    { kind: "HOLD", point_amount: -40, balance: 60, held: 40, amount: 40, captured: 0, released: 0, status: "HELD" },
  ]);
  const { created_at, ends_at } = t.hold.json;
  expect(Date.parse(ends_at) - Date.parse(created_at)).toBe(900_000);
  const { hold_id, amount, captured, released, status, user_id } = t.hold.json;
  expect(await t.show()).toEqual({ hold_id, user_id, amount, captured, released, status, ends_at, created_at });
  const spent = await t.put("/point/sub", { key: "s", body: { user_id: "u_1", point_amount: 61 } });
  expect([spent.status, spent.json.code]).toEqual([409, "insufficient-points"]);
});

test("a partial capture releases the rest; a repeated capture is replayed", async () => {
  await using t = await setupHold();
  const first = await t.act("capture", "c", { point_amount: "15", source: "order", source_id: "o_1" });
  expect([first.status, first.json]).toMatchObject([
    200,
    { kind: "CAPTURE", moved: 15, balance: 85, held: 0, status: "CAPTURED", captured: 15, released: 25 },
  ]);
  const again = await t.act("capture", "c", { point_amount: 15, source: "order", source_id: "o_1" });
  expect([again.isReplay, again.text]).toEqual([true, first.text]);
  expect((await t.act("capture", "c", { point_amount: 16 })).json.code).toBe("idempotency-conflict");
  expect((await t.act("release", "r")).json.code).toBe("hold-ended");
  expect(await t.show()).toMatchObject({ status: "CAPTURED", captured: 15, released: 25 });
});

test("a capture or release without a body takes the whole hold", async () => {
  await using t = await setupHold();
  const whole = await t.act("capture", "c");
  expect(whole.json).toMatchObject({ moved: 40, balance: 60, status: "CAPTURED" });
  expect((await t.act("capture", "c", {})).text).toBe(whole.text);
  await using other = await setupHold();
  // UUIDs are case-insensitive.
  const release = () => other.post(`/v1/points/holds/${other.id.toUpperCase()}/release`, { key: "r" });
  expect((await release()).json).toMatchObject({ kind: "RELEASE", balance: 100, status: "RELEASED" });
  expect((await release()).isReplay).toBe(true);
  expect((await other.act("release", "x", { why: "" })).json.errors[0].field).toBe("body.why");
});

test("invalid captures, ended and unknown holds, and invalid TTLs are refused", async () => {
  await using t = await setupHold();
  expect((await t.act("capture", "c1", { point_amount: 41 })).json.code).toBe("capture-too-large");
  expect((await t.act("capture", "c2", { point_amount: most })).json.code).toBe("capture-too-large");
  await t.age("1 hour");
  expect(await t.show()).toMatchObject({ status: "EXPIRED", released: 40 });
  expect((await t.act("capture", "c3")).json.code).toBe("hold-ended");
  const unknown = "0190f3c2-7a3b-7c1e-9f00-8a6b2c4d5e6f";
  expect((await t.get(`/v1/points/holds/${unknown}`)).json.code).toBe("hold-not-found");
  expect((await t.post(`/v1/points/holds/${unknown}/release`, { key: "r" })).json.code).toBe("hold-not-found");
  for (const wrong of ["x", `urn:uuid:${t.id}`])
    expect((await t.get(`/v1/points/holds/${wrong}`)).json.errors[0].field).toBe("path.hold_id");
  for (const ttl_seconds of [0, 2_592_001, 1.5, "900"]) {
    const answer = await t.post("/v1/points/holds", {
      key: "h",
      body: { user_id: "u_1", point_amount: 1, ttl_seconds },
    });
    expect([ttl_seconds, answer.status, answer.json.errors[0].field]).toEqual([ttl_seconds, 400, "body.ttl_seconds"]);
  }
});
