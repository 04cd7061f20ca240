import { afterAll, beforeAll, expect, test } from "vitest";
import { clientOrderId } from "../order/order-request.ts";
import { auditBooks, auditBooksOf } from "./audit-books.ts";
import { createSenderHarness, type SenderHarness } from "./testing/harness.ts";

let s: SenderHarness;
beforeAll(async () => {
  s = await createSenderHarness();
  await s.accept([1, 2, 3]);
  await s.sender.runOnce();
});
afterAll(() => s[Symbol.asyncDispose]());

const idOf = (n: number) => clientOrderId("shop", `key-${n}`);

test("books that agree have no findings, and nothing is written", async () => {
  const { checked, findings } = await auditBooks(s.db, {});
  expect({ checked, findings }).toEqual({ checked: { "orders at the broker paper": 3 }, findings: [] });
  expect(await s.rows(`select * from reconciliations`)).toEqual([]);
});

test("an order that is missing at the broker, and one that is not ours, are found now", async () => {
  await s.db.query(`update paper_broker.orders set client_order_id = 'tdk-stranger' where client_order_id = $1`, [
    idOf(2),
  ]);
  const { rules, findings } = await auditBooks(s.db, {});
  expect(findings).toEqual([
    { rule: rules[0], about: "tdk-stranger", detail: expect.stringMatching(/^not-ours: the broker has it as paper-/) },
    { rule: rules[0], about: idOf(2), detail: "missing: the broker does not list it" },
  ]);
});

test("a difference that the second comparison does not find was a change in between", async () => {
  let reads = 0;
  const books = {
    ...s.paper,
    async *list(since: Date, signal: AbortSignal) {
      // At the second read the broker lists every order as ours has it.
      if (++reads > 1)
        await s.db.query(`update paper_broker.orders set client_order_id = $1 where client_order_id = 'tdk-stranger'`, [
          idOf(2),
        ]);
      yield* s.paper.list(since, signal);
    },
  };
  expect((await auditBooksOf(books, s.db)).findings).toEqual([]);
  expect(reads).toBe(2);
});

test("books that cannot be read are a finding", async () => {
  const books = {
    ...s.paper,
    // biome-ignore lint/correctness/useYield: it fails before the first order.
    async *list() {
      throw new Error("503 from the broker");
    },
  };
  expect((await auditBooksOf(books, s.db)).findings).toEqual([
    { rule: expect.any(String), about: "paper", detail: expect.stringContaining("503 from the broker") },
  ]);
});
