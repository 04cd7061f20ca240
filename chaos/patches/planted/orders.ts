/** Defects in how orders are sent, asked about and written down. The broker of a run dedupes nothing. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: a patch finds templates as text.
import { deadly, type Planted, slow } from "./defect.ts";

const sender = "services/orders/workers/send-orders.ts";
const checker = "services/orders/workers/check-unresolved.ts";
const transitionOrder = "services/orders/store/transition-order.ts";

export const orderDefects: readonly Planted[] = [
  {
    name: "sent-before-written",
    what: "An order is sent, and then it is written down that it may be out: after a crash it is sent again.",
    caughtBy: ["order-taken-once"],
    broughtOutBy: { given: [deadly("order.replied", 12)] },
    patches: [
      {
        file: sender,
        find: "const recorded = await recordDispatch(db, { order, timestamp, windowMs: broker.windowMs, leaseMs }).catch(onError);",
        replace: 'const recorded = "dispatched" as Awaited<ReturnType<typeof recordDispatch>>;',
      },
    ],
  },
  {
    name: "doubt-not-asked-about",
    what: "Whoever claims an order that a dead sender held sends it, without asking the broker whether it has it.",
    caughtBy: ["order-taken-once"],
    broughtOutBy: { given: [deadly("order.replied", 12)] },
    patches: [
      {
        file: sender,
        find: 'const priorSend = order.maybeSent ? await checkPriorSend(order, lease.signal) : "none";',
        replace: 'const priorSend = order.maybeSent ? "ruled-out" : "none";',
      },
    ],
  },
  {
    name: "timeout-is-a-failure",
    what: "An answer that did not come is taken for a refusal: the order is sent again after its wait.",
    caughtBy: ["order-taken-once"],
    patches: [
      {
        file: sender,
        find: 'if (outcome.kind === "unknown") return transition(order, unresolvedTarget(order, outcome));',
        replace: "",
      },
    ],
  },
  {
    name: "not-yet-is-never",
    what: "A broker that has not got an order is believed to have refused it, though its request is still under way.",
    caughtBy: ["order-taken-once"],
    broughtOutBy: { rate: 120 },
    patches: [
      {
        file: "services/orders/brokers/outcomes.ts",
        find: "const windowEndsAt = lastSentAt.getTime() + windowMs + marginMs;",
        replace: "const windowEndsAt = 0 * (lastSentAt.getTime() + windowMs + marginMs);",
      },
    ],
  },
  {
    name: "doubt-is-given-up",
    what: "An order that the broker has not got at the first question is given up, and then it has it.",
    caughtBy: ["taken-is-succeeded"],
    broughtOutBy: { rate: 120 },
    patches: [
      {
        file: checker,
        find: "return transition(order, unresolvedTarget(order, { code, reason }));",
        replace: "return transition(order, exhaustedTarget(claim.attempt, code));",
      },
    ],
  },
  {
    name: "order-without-a-fence",
    what: "What became of an order is written down by whoever has it in hand, and not by who holds it.",
    caughtBy: ["only-the-holder-settles"],
    broughtOutBy: {
      forMs: 12_000,
      rate: 20,
      given: [slow("order.transitioning", 1_500)],
      faults: ["orders_1", "orders_2"].flatMap((target, n) =>
        [1_500, 7_000].map((atMs) => ({ atMs: atMs + n * 2_700, fault: "pause", target, forMs: 2_900 })),
      ),
    },
    patches: [
      {
        file: "packages/kernel/claims/table-sql.ts",
        find: "else ${isOurClaim} end",
        replace: "else t.${c.leaseUntil} is not null end",
      },
    ],
  },
  {
    name: "name-of-each-attempt",
    what: "Every attempt has a name of its own at the broker: nobody can ask what became of the order.",
    caughtBy: ["one-name-for-ever"],
    patches: [
      {
        file: sender,
        find: "const outcome = await calls.send(toBrokerOrder(order), { timestamp, signal: lease.signal });",
        replace: `const { attempt } = order.claim;
    const named = { ...order, clientOrderId: order.clientOrderId + (attempt > 1 ? "-" + attempt : "") };
    const outcome = await calls.send(toBrokerOrder(named), { timestamp, signal: lease.signal });`,
      },
    ],
  },
  {
    name: "ledger-apart",
    what: "What became of an order goes to the order by one statement and to the ledger by another.",
    caughtBy: ["ledger-follows"],
    broughtOutBy: { given: [deadly("planted.gap", 6)] },
    patches: [
      {
        file: transitionOrder,
        find: "where l.order_row_id = $1 and (select count(*) from updated) > 0",
        replace: "where l.order_row_id = $1 and (select count(*) from updated) > 0 and false",
      },
      {
        file: transitionOrder,
        find: "return rows.length > 0;",
        replace: `if (rows.length > 0) {
    await reach("planted.gap");
    const its = "update idempo_ledger l set status = " + ledgerStatusSql("m") + ", answer = " + responseSql("m") +
      ", result_digest = case when m.done_at is not null then 'sha256:' || encode(sha256(" + responseSql("m") + "), 'hex') end" +
      " from outbox_orders m where l.order_row_id = m.id and m.id = $1";
    await db.query(its, [id]);
  }
  return rows.length > 0;`,
      },
    ],
  },
  {
    name: "answer-of-another",
    what: "The answer that came last is kept as evidence, whichever order it was about.",
    caughtBy: ["broker-answer-is-kept"],
    patches: [
      {
        file: "services/orders/brokers/outcomes.ts",
        find: 'return { kind: "taken", result: toResult(order, order.status), evidence };',
        replace: `const last = Object(globalThis).lastEvidence ?? evidence;
  Object(globalThis).lastEvidence = evidence;
  return { kind: "taken", result: toResult(order, order.status), evidence: last };`,
      },
    ],
  },
];
