/** Defects of sending, checking and recording orders. The broker of a run does not deduplicate. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: a patch finds templates as text.
import { deadly, type Planted, slow } from "./defect.ts";

const sender = "services/orders/workers/send-orders.ts";
const checker = "services/orders/workers/check-unresolved.ts";
const transitionOrder = "services/orders/store/transition-order.ts";

export const orderDefects: readonly Planted[] = [
  {
    name: "sent-before-written",
    what: "An order is sent before its dispatch is recorded: after a crash it is sent again.",
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
    what: "A sender that claims an order of a dead sender sends it, without asking the broker whether it has the order.",
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
    what: "A missing reply is treated as a rejection: the order is sent again after its backoff.",
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
    what: "An order that the broker does not have yet counts as rejected, although its request is still in flight.",
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
    what: "An order that the broker does not have at the first check is aborted, and then the broker takes it.",
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
    what: "The outcome of an order is written without a check that the worker still holds the claim.",
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
    what: "Every attempt has its own name at the broker: the outcome of the order cannot be looked up.",
    caughtBy: ["one-broker-name"],
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
    what: "One statement writes the outcome of an order to the order, and another to the ledger.",
    caughtBy: ["ledger-matches-orders"],
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
    what: "The last reply is stored as evidence, whichever order it belongs to.",
    caughtBy: ["broker-reply-is-stored"],
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
