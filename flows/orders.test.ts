/**
 * Orders through real processes, to a broker that is one as well: every answer of the table, every step of the diagram, a
 * restart of everything, the kill switch, cancels, and a person who says what became of an order.
 */
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { cancel, instrumentsIn, look, openOrders, orderOf, patient, place, stop } from "./orders.ts";

const long = { timeout: 600_000 };

test("every answer of the table: 201, 200, 409, 422, 429 and 503", long, async () => {
  await using setup = await openOrders();
  const at = await setup.serve();
  const first = await place(at, orderOf("k-1"));
  expect(first).toMatchObject({ status: 201, body: { status: "accepted", order_id: "o-k-1", idempotency_key: "k-1" } });
  await setup.untilStatus("k-1", "succeeded");
  const again = await place(at, orderOf("k-1"));
  expect(again).toMatchObject({ status: 200, body: { status: "succeeded", result: { status: "filled" } } });
  expect(again.body.request_digest).toBe(first.body.request_digest);
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  expect(await place(at, orderOf("k-1", { trace_id: "t-9" }))).toMatchObject({ status: 200 });

  const refused = async (body: ReturnType<typeof orderOf>, key?: string) => {
    const { status, body: said } = await place(at, body, key);
    return [status, said.code];
  };
  expect(await refused(orderOf("k-1", { qty: "0.6" }))).toEqual([409, "idempotency-conflict"]);
  expect(await refused(orderOf("k-2", { order_id: "o-k-1" }))).toEqual([409, "order-id-used"]);
  expect(await refused(orderOf("k-2"), "k-3")).toEqual([422, "idempotency-key-mismatch"]);
  expect(await refused(orderOf("k-2", { instrument: "XRP-USD" }))).toEqual([422, "instrument-not-allowed"]);
  expect(await refused(orderOf("k-2", { qty: "0.55" }))).toEqual([422, "quantity-not-allowed"]);
  expect(await refused(orderOf("k-2", { qty: "10.1" }))).toEqual([422, "limit-exceeded"]);

  const slow = await setup.serve({ ORDERS_ROLES: "api", ORDERS_INSTRUMENTS: instrumentsIn(setup.folder, 1) });
  // A second that lies ahead holds still: all of them are of that one.
  await setup.db.query(`update order_rate set counted_at = now() + interval '1 hour', taken = 0`);
  const many = await Promise.all(Array.from({ length: 20 }, (_, n) => place(slow, orderOf(`many-${n}`))));
  const tooMany = many.find(({ status }) => status === 429);
  expect(tooMany).toMatchObject({ body: { code: "order-rate-exceeded" } });
  expect(tooMany?.headers.get("retry-after")).toBe("1");
  expect(many.map(({ status }) => status).sort()).toEqual([201, ...Array(19).fill(429)]);

  expect((await stop(at, "halt")).status).toBe(200);
  const halted = await place(at, orderOf("k-4"));
  expect(halted).toMatchObject({ status: 503, body: { code: "trading-halted" } });
  expect(halted.headers.get("retry-after")).not.toBeNull();
  expect((await place(at, orderOf("k-1"))).text).toBe(again.text);
});

test(
  "where the books must have been compared, new orders get 503 while they cannot be; known keys are answered",
  long,
  async () => {
    await using setup = await openOrders({ settings: { ORDERS_REQUIRE_RECONCILIATION: "true" } });
    const at = await setup.serve({ ORDERS_ROLES: "api" });
    // Each looks at the books as soon as it starts.
    const reconciler = () => setup.launch({ ORDERS_ROLES: "reconciler" });
    const look = async () => (await setup.db.query(`select last_ok_at, last_error from reconciliations`)).rows[0];
    const isTaken = (key: string) => async () => (await place(at, orderOf(key))).status === 201;

    const refused = await place(at, orderOf("k-1"));
    expect(refused).toMatchObject({ status: 503, body: { code: "reconciliation-failing" } });
    expect(refused.headers.get("retry-after")).toBe("30");
    expect(await setup.statusOf("k-1")).toBeUndefined();
    const first = await reconciler();
    await until("the books were compared, and it is taken in", isTaken("k-1"), patient);

    first.signal("SIGKILL");
    await first.exited;
    await setup.simulator.kill();
    await setup.db.query(`update reconciliations set last_ok_at = last_ok_at - interval '4 minutes'`);
    await reconciler();
    await until("a look has failed", async () => (await look())?.last_error !== null, patient);
    expect(await place(at, orderOf("k-2"))).toMatchObject({ status: 503, body: { code: "reconciliation-failing" } });
    expect(await place(at, orderOf("k-1"))).toMatchObject({ status: 200, body: { status: "accepted" } });

    await setup.simulator.start();
    await reconciler();
    await until("the books were compared again", isTaken("k-2"), patient);
  },
);

test("every step of the diagram is in the history, and a restart of everything answers as before", long, async () => {
  await using setup = await openOrders();
  const at = await setup.serve();
  const lives = [
    ["filled", [], "pending>sending>succeeded"],
    ["busy", ["busy"], "pending>sending>failed>pending>sending>succeeded"],
    ["refused", ["reject"], "pending>sending>aborted"],
    [
      "given-up",
      ["busy", "rate-limited", "busy"],
      "pending>sending>failed>pending>sending>failed>pending>sending>aborted",
    ],
    ["answer-lost", ["lost-after"], "pending>sending>unknown>succeeded"],
    ["error-though-taken", ["error-after"], "pending>sending>unknown>succeeded"],
    ["confirmed-twice", ["already"], "pending>sending>succeeded"],
    ["request-lost", ["lost-before"], "pending>sending>unknown>pending>sending>succeeded"],
  ] as const;
  // One after the other, for what goes wrong is told to the broker for the orders that come next.
  for (const [key, faults] of lives) {
    await setup.simulator.fault(...faults);
    expect((await place(at, orderOf(key))).status).toBe(201);
    if (key === "request-lost") {
      await setup.untilStatus(key, "unknown");
      await setup.anHourPasses();
    }
    await setup.untilAllEnded();
  }
  for (const [key, , steps] of lives) {
    // While it is not known what became of it, the broker may have been asked more often than once.
    expect((await setup.stepsOf(key)).replace(/(?:unknown>)+/g, "unknown>"), key).toBe(steps);
  }
  const { theirs, ours } = await setup.books();
  expect(theirs).toEqual(ours);
  expect(ours).toHaveLength(6);
  const reasons = await Promise.all(["refused", "given-up"].map(async (key) => (await place(at, orderOf(key))).body));
  expect(reasons).toMatchObject([
    { status: "failed", reason_code: "BROKER_REJECTED" },
    { status: "failed", reason_code: "BROKER_DOWN" },
  ]);

  const told = await Promise.all(lives.map(async ([key]) => (await place(at, orderOf(key))).text));
  at.signal("SIGKILL");
  await at.exited;
  await setup.simulator.kill();
  await setup.simulator.start();
  const restarted = await setup.serve();
  const repeats = await Promise.all(lives.map(([key]) => place(restarted, orderOf(key))));
  expect(repeats.map(({ status }) => status)).toEqual(lives.map(() => 200));
  expect(repeats.map(({ text }) => text)).toEqual(told);
  expect((await setup.books()).theirs).toEqual(theirs);
});

test(
  "what is halted stays halted over a restart and is sent when trading goes on; what was not sent is cancelled",
  long,
  async () => {
    await using setup = await openOrders();
    const doors = await setup.serve({ ORDERS_ROLES: "api" });
    for (const key of ["wanted", "unwanted"]) expect((await place(doors, orderOf(key))).status).toBe(201);
    const other = orderOf("other", { instrument: "ETH-USD", qty: "2", price: "3000" });
    expect((await place(doors, other)).status).toBe(201);
    expect(await cancel(doors, "unwanted")).toMatchObject({ status: 200, body: { status: "aborted" } });
    expect(await cancel(doors, "unwanted")).toMatchObject({ status: 200 });
    expect(await setup.command("halt", "BTC-USD", "--reason", "odd prices")).toMatchObject({ code: 0 });

    for (let start = 0; start < 2; start++) {
      const at = await setup.serve();
      expect(await place(at, orderOf(`new-${start}`))).toMatchObject({ status: 503, body: { code: "trading-halted" } });
      // That it sends what is not halted shows that it has looked.
      await setup.untilStatus("other", "succeeded");
      // A sender that has just started may take it in hand, sees at the last check that it is halted, and gives it back.
      await setup.untilStatus("wanted", "pending");
      expect(setup.simulator.taken()).toHaveLength(1);
      at.signal("SIGKILL");
      await at.exited;
      await setup.endLeases();
    }
    const at = await setup.serve();
    expect((await setup.command("resume", "BTC-USD", "--reason", "mended")).code).toBe(0);
    await setup.untilStatus("wanted", "succeeded");
    expect(await setup.stepsOf("unwanted")).toBe("pending>aborted");
    const { theirs, ours } = await setup.books();
    expect(theirs).toEqual(ours);
    expect(ours).toHaveLength(2);

    // One that the broker has, and has not filled, is cancelled there.
    expect((await place(at, orderOf("open", { time_in_force: "GTC" }))).status).toBe(201);
    await setup.untilStatus("open", "succeeded");
    expect((await cancel(at, "open")).status).toBe(202);
    const isCancelled = async () => (await look(at, "/do/order/open")).body.cancel === "done";
    await until("the broker has cancelled it", isCancelled, patient);
    expect((await cancel(at, "wanted")).status).toBe(202);
    const isTooLate = async () => (await look(at, "/do/order/wanted")).body.cancel === "refused";
    await until("the broker says that it is too late", isTooLate, patient);
  },
);

test("what the broker cannot tell of waits, visible, until a person says what became of it", long, async () => {
  // A broker that promises nothing about when it takes an order: it may always come to have it.
  await using setup = await openOrders({ settings: { ORDERS_BROKER_WINDOW_MS: "0" } });
  const at = await setup.serve();
  for (const key of ["taken", "not-taken"]) {
    await setup.simulator.fault("lost-before");
    expect((await place(at, orderOf(key))).status).toBe(201);
    await setup.untilStatus(key, "unknown");
  }
  expect(await place(at, orderOf("taken"))).toMatchObject({
    status: 200,
    body: { status: "accepted", unresolved: true },
  });
  const waiting = (await look(at, "/v1/orders/unresolved")).body.orders as { idempotency_key: string }[];
  expect(waiting.map((order) => order.idempotency_key)).toEqual(["taken", "not-taken"]);
  const listed = JSON.parse((await setup.command("list", "--unresolved", "--json")).out);
  expect(listed.orders).toHaveLength(2);

  // It may be asked about at that very moment; then the command says so, and is run again.
  const resolve = (key: string) => async () =>
    (await setup.command("resolve", key, "--as", key, "--reason", "their books", "--by", "aki", "--yes")).code === 0;
  for (const key of ["taken", "not-taken"]) await until(`${key} is resolved`, resolve(key), patient);
  await setup.untilAllEnded();
  expect(await setup.stepsOf("not-taken")).toMatch(/^pending>sending>(?:unknown>)+pending>sending>succeeded$/);
  expect(await setup.stepsOf("taken")).toMatch(/^pending>sending>(?:unknown>)+succeeded$/);
  expect(setup.simulator.taken()).toHaveLength(1);
  const { rows } = await setup.db.query(`select "as", reason, by from order_resolutions order by resolution_id`);
  expect(rows).toEqual(["taken", "not-taken"].map((as) => ({ as, reason: "their books", by: "aki" })));
});
