import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { cancelRequests } from "../store/cancel-requests.ts";
import { bodyOf, createHarness } from "../testing.ts";

interface Result {
  readonly result: string;
  readonly idempotency_key: string;
}

const resultsOf = (response: { json(): { results: readonly Result[] } }) =>
  response.json().results.map(({ idempotency_key, result }) => `${idempotency_key} ${result}`);

async function setup() {
  const t = await createHarness();
  return {
    ...t,
    ...(await t.process()),
    /** Moves an order on, as a worker does: sent, or open at the broker. */
    async move(key: string, to: "sending" | "open" | "filled") {
      await t.db.query(
        `update outbox_orders set status = 'sending', lease_until = now() + interval '1 hour' where idempotency_key = $1`,
        [key],
      );
      if (to === "sending") return;
      await t.db.query(
        `update outbox_orders set status = 'succeeded', lease_until = null, done_at = now(), execution = $2::text,
                filled_qty = case $2::text when 'filled' then qty else 0 end where idempotency_key = $1`,
        [key, to],
      );
    },
  };
}

test("all open orders are cancelled, each with its result, and ended ones are left alone", async () => {
  await using t = await setup();
  for (const key of ["waiting", "sent", "open", "filled"]) await t.order(bodyOf(key));
  await t.order(bodyOf("other"), { holder: "bot" });
  await t.move("sent", "sending");
  await t.move("open", "open");
  await t.move("filled", "filled");
  const first = await t.cancelAll();
  expect(first.statusCode).toBe(200);
  expect(resultsOf(first)).toEqual(["waiting cancelled", "sent requested", "open requested", "other cancelled"]);
  expect(first.json().results[0]).toMatchObject({ caller: "desk", status: "aborted", cancel: null });
  expect(first.json().results[2]).toMatchObject({ status: "succeeded", execution: "open", cancel: "requested" });
  // Again: what is aborted is no longer open, and what is requested stays requested.
  expect(resultsOf(await t.cancelAll())).toEqual(["sent requested", "open requested"]);
  const { rows } = await t.db.query(`select requested_by, count(*)::int as requests from cancel_requests group by 1`);
  expect(rows).toEqual([{ requested_by: "risk", requests: 2 }]);
  const { rows: history } = await t.db.query(`select by from order_status_history where to_status = 'aborted'`);
  expect(history).toEqual([{ by: "risk" }, { by: "risk" }]);
});

test("cancel-all can be narrowed to an instrument and to a caller", async () => {
  await using t = await setup();
  await t.order(bodyOf("btc"));
  await t.order(bodyOf("eth", { instrument: "ETH-USD", qty: 1, price: "3000" }));
  await t.order(bodyOf("bots"), { holder: "bot" });
  expect(resultsOf(await t.cancelAll({ instrument: "ETH-USD" }))).toEqual(["eth cancelled"]);
  expect(resultsOf(await t.cancelAll({ caller: "bot" }))).toEqual(["bots cancelled"]);
  expect(resultsOf(await t.cancelAll({ caller: "desk", instrument: "ETH-USD" }))).toEqual([]);
  expect(resultsOf(await t.cancelAll())).toEqual(["btc cancelled"]);
});

test("a call handles a bounded number of orders and says where to go on", async () => {
  await using t = await setup();
  for (let n = 0; n < 5; n++) await t.order(bodyOf(`k${n}`));
  await t.move("k1", "open");
  const keys: string[] = [];
  let after: string | undefined;
  do {
    const response = await t.cancelAll({ limit: 2, ...(after !== undefined && { after }) });
    expect(response.json().results.length).toBeLessThanOrEqual(2);
    keys.push(...resultsOf(response));
    after = response.json().next;
  } while (after !== undefined);
  expect(keys).toEqual(["k0 cancelled", "k1 requested", "k2 cancelled", "k3 cancelled", "k4 cancelled"]);
  expect((await t.cancelAll({ limit: 501 })).statusCode).toBe(400);
});

test("after cancel-only no order is accepted, and cancel-all leaves none that can be sent", async () => {
  await using t = await setup();
  await t.order(bodyOf("k1"));
  await t.halt("cancel-only");
  expect((await t.order(bodyOf("k2"))).statusCode).toBe(503);
  expect(resultsOf(await t.cancelAll())).toEqual(["k1 cancelled"]);
  const { rows } = await t.db.query(`select count(*)::int as open from outbox_orders where status <> 'aborted'`);
  expect(rows).toEqual([{ open: 0 }]);
});

test("under halt, unsent orders are aborted at once, and the broker is asked when cancels are allowed again", async () => {
  await using t = await setup();
  for (const key of ["waiting", "open"]) await t.order(bodyOf(key));
  await t.move("open", "open");
  await t.halt("halt");
  expect(resultsOf(await t.cancelAll())).toEqual(["waiting cancelled", "open requested"]);
  const isHalted = async () => {
    const [claimed] = await cancelRequests.claim(t.db, { limit: 1, leaseMs: 1, worker: "test", queue: "paper" });
    return claimed?.isHalted;
  };
  expect(await isHalted()).toBe(true);
  await t.halt("cancel-only");
  await until("the claim can be repeated", async () => (await isHalted()) === false);
});

test("cancel-all needs its scope", async () => {
  await using t = await setup();
  await t.order(bodyOf("k1"));
  for (const holder of ["desk", "auditor", "officer"]) expect((await t.cancelAll({}, holder)).statusCode).toBe(403);
  expect((await t.get("/do/order/k1")).json().status).toBe("pending");
});
